"""Loads a freshly linked module in a child process, as a program would: its registry's refusals show at the build.

torch is a stand-in there, since importing the real one takes seconds: registration needs its libraries, which the
module brings along, but hardly ever its Python side. A binding that does need it (a torch dtype as a default argument,
say) fails or crashes with the stand-in, so whatever is not plainly a refusal of the registry is tried again in earnest.

Loading torch's libraries is nearly all of it. `Importer` starts the child early, while the compilers are still at work.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from utils.build.failures import Failure
from utils.build.toolchain import MODULE

_TIMEOUT = 120

# Loads the libraries it is given, then waits for the module's path, which comes as JSON (a path may hold any byte).
_PROGRAM = """
import importlib.util, json, sys, types
torch, *libraries = sys.argv[1:]
for library in libraries:
    try:
        import ctypes
        ctypes.CDLL(library)
    except (ImportError, OSError):
        pass
line = sys.stdin.readline()
if not line:
    sys.exit()
if torch == "stand-in":
    sys.modules["torch"] = types.ModuleType("torch")
else:
    import torch
spec = importlib.util.spec_from_file_location("MODULE", json.loads(line))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("KERNELS" + json.dumps(module.__kernels__), flush=True)
""".replace("MODULE", MODULE)


@dataclass
class Imported:
    """What came of it: the registered kernels, or a failure."""

    kernels: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


class Importer:
    """Imports one module with the interpreter `python`, in a process of its own that starts now and loads `libraries`
    (those the module will need) until it is told the module. Leaving the context ends the process."""

    def __init__(self, python: Path, cwd: Path, libraries: Sequence[Path] = ()) -> None:
        self._python = python
        self._cwd = cwd
        self._process = self._start("stand-in", libraries)

    def __enter__(self) -> Importer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _end(self._process)

    def _start(self, torch: str, libraries: Sequence[Path] = ()) -> subprocess.Popen[str]:
        flags = ["-I", "-S"] if torch == "stand-in" else ["-I"]
        return subprocess.Popen(
            [str(self._python), *flags, "-c", _PROGRAM, torch, *map(str, libraries)],
            cwd=self._cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def load(self, module: Path) -> Imported:
        """Imports `module`, with the stand-in for torch and then, unless the answer is plain, with the real one."""
        refusal = f"ImportError: {MODULE}: "
        for torch in ("stand-in", "torch"):
            if torch == "torch":
                self._process = self._start(torch)
            try:
                said_out, said_error = self._process.communicate(json.dumps(str(module)) + "\n", timeout=_TIMEOUT)
            except subprocess.TimeoutExpired:
                _end(self._process)
                return Imported(
                    failure=Failure(
                        f"importing the module did not end within {_TIMEOUT} s", meaning=_AT_IMPORT, remedy=_LOOK
                    )
                )
            code = self._process.returncode
            answer = [line for line in said_out.splitlines() if line.startswith("KERNELS")]
            if code == 0 and answer:
                return Imported(json.loads(answer[-1].removeprefix("KERNELS")))
            said = [line for line in said_error.splitlines() if line.strip()]
            refused = [line.removeprefix(refusal) for line in said if line.startswith(refusal)]
            # A registration that failed may have failed for want of the real torch.
            if refused and not (torch == "stand-in" and refused[-1].startswith("the registration of")):
                return Imported(failure=_refused(refused[-1]))
        if code < 0:
            name = signal.Signals(-code).name
            return Imported(failure=Failure(f"importing the module crashed ({name})", meaning=_AT_IMPORT, remedy=_LOOK))
        return Imported(
            failure=Failure(
                f"the module cannot be imported: {said[-1] if said else 'no message'}", meaning=_AT_IMPORT, remedy=_LOOK
            )
        )


def try_import(python: Path, module: Path, cwd: Path) -> Imported:
    """Imports `module` with the interpreter `python`, in a process of its own."""
    with Importer(python, cwd) as importer:
        return importer.load(module)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    with contextlib.suppress(OSError, ValueError):
        process.communicate()


_AT_IMPORT = "code that runs at import: the registered functions, and constructors of static objects."
_LOOK = f"see what runs there; PYTHONFAULTHANDLER=1 python -c 'import torch, {MODULE}' shows more."


def _refused(reason: str) -> Failure:
    place = next((word.strip("(),;:'") for word in reason.split() if "_binding.cpp:" in word), "")
    return Failure(
        reason,
        place=place,
        meaning="the module refuses to be imported: its registrations do not fit together.",
        remedy="mend the registration named, then build again.",
    )
