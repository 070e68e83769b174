"""Precompiled headers of torch: a binding compiles in little more than half the time with one.

Parsing torch's headers is most of a binding's compilation. GCC can keep the result in a file (half a gigabyte for
all of torch, written in twice the time of one plain compilation), so making it pays from the second or third
compilation on:

- it is made by a process of its own, at the lowest priority, and appears whole (renamed when complete);
- with cores to spare that process starts beside the first build; on a small machine it starts only after a build, and
  only when bindings are compiled for the second time;
- a build that finds it in the making waits for it, but not for long: half the time that it has been in the making, at
  most _PATIENCE seconds, about what a binding gains. So the edit after a cold build is a fast one already;
- it lies in the user's cache folder, is shared by all workspaces, and the four last used are kept.

There is one for each set of headers that bindings begin with. A file takes one only when it includes all of the set
itself before anything else, so what compiles with it compiles without. KERNEL_WORKBENCH_PCH=0 does without.
`python -m utils.build.pch` makes them now, and waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utils.build import flags
from utils.build.scan import starts_with_includes
from utils.build.storage import cache_folder
from utils.build.toolchain import HostCompiler, Nvcc, Torch
from utils.problem.workspace import ROOT

if TYPE_CHECKING:
    from utils.build.plan import Tools

VARIABLE = "KERNEL_WORKBENCH_PCH"
# The most comprehensive first: a source takes the first that fits.
SETS = {
    "types": ("torch/types.h", "torch/csrc/utils/pybind.h"),
    "tensor": ("ATen/core/Tensor.h", "c10/cuda/CUDAGuard.h", "torch/csrc/utils/pybind.h"),
}
_NAME = "torch_headers.h"
_KEPT = 4
_DISK, _MEMORY = 2 << 30, 4 << 30
_PATIENCE = 5.0


def fitting(source_text: str) -> str:
    """The set a source may be compiled with, since it includes those headers first, by itself; "" for none."""
    if starts_with_includes(source_text, ("torch/extension.h",)):
        return "types"
    return next((name for name, headers in SETS.items() if starts_with_includes(source_text, headers)), "")


class PrecompiledHeader:
    """One set's, for one compiler, torch and list of flags; `header` is what -include is given."""

    def __init__(self, kind: str, torch: Torch, nvcc: Nvcc, compiler: HostCompiler) -> None:
        self.kind = kind
        system = flags.system_include_folders(torch, nvcc)
        self.command = [*compiler.command, *flags.binding_flags(compiler.gnu)]
        self.command += [flag for folder in system for flag in ("-isystem", str(folder))]
        headers = [folder / name for name in SETS[kind] for folder in torch.include]
        watched = [torch.root / "version.py", *headers]
        described = [
            SETS[kind],
            self.command,
            compiler.version,
            str(compiler.path),
            [_times(path) for path in (*watched, compiler.path)],
        ]
        self.key = hashlib.sha256(json.dumps(described).encode("utf-8", "surrogateescape")).hexdigest()[:20]
        cache = cache_folder() if compiler.gnu and os.environ.get(VARIABLE) != "0" else None
        self.folder = cache / "pch" / self.key if cache else None

    @property
    def header(self) -> Path | None:
        """The header to include when it is there, precompiled; None otherwise."""
        if self.folder is None or not (self.folder / f"{_NAME}.gch").is_file():
            return None
        with contextlib.suppress(OSError):
            os.utime(self.folder)  # the last use, for eviction
        return self.folder / _NAME

    def wait(self, say: Callable[[str], None] = lambda text: None) -> Path | None:
        """The header once another process has made it, where that is worth waiting for; `say` is told of the wait."""
        if self.folder is None or not self.folder.is_dir():
            return None
        started = time.time()
        with contextlib.suppress(OSError):
            started = (self.folder / _NAME).stat().st_mtime
        patience = min(_PATIENCE, (time.time() - started) / 2)
        if patience > 1 and _busy(self.folder):
            say(f"waiting for the precompiled torch headers, which are nearly made ({patience:.0f} s at most)")
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and _busy(self.folder):
            time.sleep(0.05)
        return self.header

    def wanted_before(self) -> bool:
        """Whether a build has wanted it before this one; from now on, yes."""
        if self.folder is None:
            return False
        marker = self.folder / "wanted"
        if marker.exists():
            return True
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            marker.touch()
        return False

    def start(self) -> int | None:
        """Starts making it in the background; the process, or None where room is lacking."""
        if self.folder is None:
            return None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
            memory = flags.available_memory()
            if free < _DISK or (memory and memory < _MEMORY) or _busy(self.folder):
                return None
            # No file of ours stays open in it: whoever waits for our output must not wait for this.
            with open(self.folder / "log", "wb") as log:
                return subprocess.Popen(
                    [sys.executable, "-m", "utils.build.pch", self.kind, str(self.folder), json.dumps(self.command)],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                ).pid
        except OSError:
            return None


def _times(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


def _busy(folder: Path) -> bool:
    """Whether another process is making it."""
    with open(folder / "lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


class BuildHeaders:
    """The precompiled headers of one build, which compiles bindings that fit the sets `kinds` (one entry each)."""

    def __init__(self, kinds: Sequence[str], tools: Tools, say: Callable[[str], None]) -> None:
        self._kinds = kinds
        self._say = say
        self._all = [PrecompiledHeader(kind, tools.torch, tools.nvcc, tools.compiler) for kind in sorted(set(kinds))]
        self._later: list[PrecompiledHeader] = []

    def ready(self, spare_jobs: int) -> dict[str, Path]:
        """What the compilers get now, by set. Starts making what is lacking, beside the build when it leaves a job
        for each, or else has `finish` do so where it is likely to pay."""
        found = {each.kind: header for each in self._all if (header := each.header or each.wait(self._say))}
        lacking = [each for each in self._all if each.kind not in found]
        for each in lacking:
            if spare_jobs >= len(lacking):
                self._start(each)
            elif each.wanted_before() or self._kinds.count(each.kind) >= 4:
                self._later.append(each)
        return found

    def finish(self) -> None:
        """To be called when the compilers are done."""
        for each in self._later:
            self._start(each)

    def _start(self, header: PrecompiledHeader) -> None:
        process = header.start()
        if process:
            self._say(
                "making the precompiled torch headers in the background, for later builds "
                f"(process {process}, about 20 s, once)"
            )


def make(kind: str, folder: Path, command: Sequence[str]) -> bool:
    """Makes the header of the set `kind` in `folder` by running `command`, and waits; false when that failed."""
    with open(folder / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        header = folder / _NAME
        precompiled = folder / f"{_NAME}.gch"
        if precompiled.is_file():
            return True
        for leftover in folder.glob("*.part"):
            leftover.unlink(missing_ok=True)
        part = folder / f"{os.getpid()}.part"
        header.write_text("".join(f"#include <{name}>\n" for name in SETS[kind]))
        done = subprocess.run([*command, "-x", "c++-header", str(header), "-o", str(part)], cwd=folder)
        if done.returncode != 0:
            part.unlink(missing_ok=True)
            return False
        part.replace(precompiled)
    _evict(folder)
    return True


def _evict(newest: Path) -> None:
    """Removes all but the last used precompiled headers beside `newest`, and what is older than a month."""
    others = [each for each in newest.parent.iterdir() if each.is_dir() and each != newest]
    others.sort(key=lambda each: each.stat().st_mtime, reverse=True)
    for number, each in enumerate(others, 2):
        if (number > _KEPT or time.time() - each.stat().st_mtime > 30 * 86400) and not _busy(each):
            shutil.rmtree(each, ignore_errors=True)


def main(argv: Sequence[str]) -> int:
    if argv:
        os.nice(19)
        kind, folder, command = argv
        return 0 if make(kind, Path(folder), json.loads(command)) else 1
    from utils.build.plan import Memory, find_tools

    tools = find_tools(Memory())
    for kind in SETS:
        wanted = PrecompiledHeader(kind, tools.torch, tools.nvcc, tools.compiler)
        if wanted.folder is None:
            print("none is made: the compiler is not GCC, the cache folder cannot be written, or it is switched off")
            return 2
        wanted.folder.mkdir(parents=True, exist_ok=True)
        print(f"precompiling {', '.join(SETS[kind])} in {wanted.folder}", flush=True)
        if not make(kind, wanted.folder, wanted.command):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
