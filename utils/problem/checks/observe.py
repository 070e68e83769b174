"""Watching what a problem file does to the world while one step of it runs."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

# An audit hook cannot be taken back, so one is installed for good and looks here.
_watching: list[Deeds] = []
_hooked = False
_WRITES = {
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "shutil.rmtree",
    "shutil.copyfile",
    "shutil.move",
}
_PROCESSES = {"subprocess.Popen", "os.system", "os.fork", "os.exec", "os.posix_spawn"}
_NETWORK = {"socket.connect", "urllib.Request"}


@dataclass
class Deeds:
    """What one step did beyond its result. Each entry is a sentence and the line of the file it came from, if known."""

    path: Path
    files: list[tuple[str, int | None]] = field(default_factory=list)
    seeds: list[tuple[str, int | None]] = field(default_factory=list)
    flags: list[tuple[str, int | None]] = field(default_factory=list)
    gpu: list[tuple[str, int | None]] = field(default_factory=list)

    def all(self) -> list[tuple[str, int | None]]:
        return [*self.files, *self.seeds, *self.flags, *self.gpu]

    def line(self) -> int | None:
        """The line of the file that is running now."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == str(self.path):
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None


@contextmanager
def watched(path: Path) -> Iterator[Deeds]:
    """Records side effects of the body; global flags are put back afterwards."""
    deeds = Deeds(path)
    _hook()
    flags = _flags()
    started = torch.cuda.is_initialized()
    patched = _patch_seeding(deeds)
    before = _listing(path)
    _watching.append(deeds)
    try:
        yield deeds
    finally:
        _watching.remove(deeds)
        for owner, name, original in patched:
            setattr(owner, name, original)
        _restore(flags, deeds)
        if torch.cuda.is_initialized() and not started:
            deeds.gpu.append(("it starts a CUDA context", None))
        for name in sorted(_listing(path) - before):
            if not any(name in said for said, _ in deeds.files):
                deeds.files.append((f"it writes {name}", None))


def _hook() -> None:
    global _hooked
    if _hooked:
        return
    _hooked = True
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    deeds = _watching[-1]
    said = None
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        mode, flags = arguments[1], arguments[2]
        writing = (isinstance(mode, str) and any(c in mode for c in "wax+")) or (
            mode is None and isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writing:
            said = f"it writes {os.fsdecode(arguments[0])}"
    elif event in _WRITES:
        said = f"it calls {event} on {arguments[0]}"
    elif event in _PROCESSES:
        said = f"it starts a process ({event})"
    elif event in _NETWORK:
        said = f"it uses the network ({event})"
    if said is not None:
        line = deeds.line()
        # Only what the file's own code leads to: torch's lazy imports may write caches of their own.
        if line is not None and "__pycache__" not in said and "/dev/null" not in said:
            deeds.files.append((said, line))


def _patch_seeding(deeds: Deeds) -> list[tuple[Any, str, Any]]:
    places: list[tuple[Any, str]] = [
        (torch, "manual_seed"), (torch, "seed"), (torch, "set_rng_state"), (torch.random, "manual_seed"),
        (torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all"), (random, "seed"),
    ]  # fmt: skip
    if "numpy" in sys.modules:
        places.append((sys.modules["numpy"].random, "seed"))
    patched = []
    for owner, name in places:
        original = getattr(owner, name)
        setattr(owner, name, _recording(original, f"{owner.__name__}.{name}", deeds))
        patched.append((owner, name, original))
    return patched


def _recording(original: Callable[..., Any], name: str, deeds: Deeds) -> Callable[..., Any]:
    def recorded(*arguments: Any, **keywords: Any) -> Any:
        line = deeds.line()
        if line is not None:
            deeds.seeds.append((f"it sets the state of a random generator ({name})", line))
        return original(*arguments, **keywords)

    return recorded


def _flags() -> dict[str, Any]:
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return {
        "default dtype": torch.get_default_dtype(),
        "grad mode": torch.is_grad_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "number of threads": torch.get_num_threads(),
        "cudnn.benchmark": cudnn.benchmark,
        "cudnn.deterministic": cudnn.deterministic,
        "cudnn.enabled": cudnn.enabled,
        "cudnn.allow_tf32": cudnn.allow_tf32,
        "cuda.matmul.allow_tf32": matmul.allow_tf32,
        "default device": str(torch.get_default_device()),
    }


def _restore(before: dict[str, Any], deeds: Deeds) -> None:
    after = _flags()
    for name, value in before.items():
        if after[name] == value:
            continue
        deeds.flags.append((f"it changes a global setting of torch ({name}: {value} to {after[name]})", None))
        match name:
            case "default dtype":
                torch.set_default_dtype(value)
            case "grad mode":
                torch.set_grad_enabled(value)
            case "deterministic algorithms":
                torch.use_deterministic_algorithms(value)
            case "number of threads":
                torch.set_num_threads(value)
            case "default device":
                torch.set_default_device(None)
            case "cuda.matmul.allow_tf32":
                torch.backends.cuda.matmul.allow_tf32 = value
            case _:
                setattr(torch.backends.cudnn, name.removeprefix("cudnn."), value)


def _listing(path: Path) -> set[str]:
    """Names in the file's folder and in the current one: what native code writes passes no audit hook."""
    names: set[str] = set()
    for folder in {path.parent, Path.cwd()}:
        try:
            names.update(name for name in os.listdir(folder) if name != "__pycache__")
        except OSError:
            continue
    return names
