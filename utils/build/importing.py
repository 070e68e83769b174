"""Loads a freshly linked module in a child process, as a program would: its registry's refusals show at the build.

torch is a stand-in there, since importing the real one takes seconds: registration needs its libraries, which the
module brings along, but hardly ever its Python side. A binding that does need it (a torch dtype as a default argument,
say) fails or crashes with the stand-in, so whatever is not plainly a refusal of the registry is tried again in earnest.
"""

from __future__ import annotations

import json
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.build.failures import Failure
from utils.build.toolchain import MODULE

_TIMEOUT = 120

_PROGRAM = """
import importlib.util, json, sys, types
path, stand_in = sys.argv[1:]
if stand_in == "stand-in":
    sys.modules["torch"] = types.ModuleType("torch")
else:
    import torch
spec = importlib.util.spec_from_file_location("MODULE", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print("KERNELS" + json.dumps(module.__kernels__), flush=True)
""".replace("MODULE", MODULE)


@dataclass
class Imported:
    """What came of it: the registered kernels, or a failure."""

    kernels: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


def try_import(python: Path, module: Path, cwd: Path) -> Imported:
    """Imports `module` with the interpreter `python`, in a process of its own."""
    refusal = f"ImportError: {MODULE}: "
    for stand_in in ("stand-in", "torch"):
        flags = ["-I", "-S"] if stand_in == "stand-in" else ["-I"]
        command = [str(python), *flags, "-c", _PROGRAM, str(module), stand_in]
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            return Imported(
                failure=Failure(
                    f"importing the module did not end within {_TIMEOUT} s", meaning=_AT_IMPORT, remedy=_LOOK
                )
            )
        answer = [line for line in done.stdout.splitlines() if line.startswith("KERNELS")]
        if done.returncode == 0 and answer:
            return Imported(json.loads(answer[-1].removeprefix("KERNELS")))
        said = [line for line in done.stderr.splitlines() if line.strip()]
        refused = [line.removeprefix(refusal) for line in said if line.startswith(refusal)]
        # A registration that failed may have failed for want of the real torch.
        if refused and not (stand_in == "stand-in" and refused[-1].startswith("the registration of")):
            return Imported(failure=_refused(refused[-1]))
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return Imported(failure=Failure(f"importing the module crashed ({name})", meaning=_AT_IMPORT, remedy=_LOOK))
    return Imported(
        failure=Failure(
            f"the module cannot be imported: {said[-1] if said else 'no message'}", meaning=_AT_IMPORT, remedy=_LOOK
        )
    )


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
