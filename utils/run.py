"""`python -m utils.run` (make run): the whole path on one workspace, compile to profile, and what it came to.

Each step is the command a user would type, run as such. With a GPU it is the real thing. Without one the kernels are
compiled for a named architecture and verified on the CPU simulator, profiling is not run, and the last lines say so.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.present.console import say
from utils.present.outcome import CANNOT_TELL, NO, YES, run
from utils.problem.workspace import ROOT, find_workspace


@dataclass(frozen=True)
class Step:
    """One command of the path."""

    name: str
    command: list[str]
    needs_gpu: bool = False


def _steps(workspace: list[str]) -> list[Step]:
    python = [sys.executable, "-m"]
    return [
        Step("compile", ["bash", str(ROOT / "utils" / "compile.sh"), *workspace]),
        Step("check", [*python, "utils.check", *workspace]),
        Step("verification", [*python, "utils.verification", *workspace]),
        Step("profiling", [*python, "utils.profiling", *workspace], needs_gpu=True),
    ]


def gpu_here() -> bool:
    """Whether an NVIDIA GPU answers; asked in a process of its own, so that this one need not import torch."""
    probe = [sys.executable, "-c", "import sys, torch; sys.exit(not torch.cuda.is_available())"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def main(argv: Sequence[str]) -> int:
    """Runs the steps in order and stops at the first that does not say yes; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m utils.run", description="Compile, check, verify and profile a workspace."
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="folder with model.py, model_new.py and kernels/ (default: the repository root)",
    )
    arguments = parser.parse_args(argv)
    workspace = find_workspace(arguments.workspace)
    gpu = gpu_here()
    done: list[str] = []
    for step in _steps(["--workspace", str(workspace.root)] if arguments.workspace else []):
        if step.needs_gpu and not gpu:
            continue
        say(f"\n== {step.name}: {_shown(step.command)}", "note")
        sys.stdout.flush()
        code = subprocess.run(step.command, cwd=ROOT, check=False).returncode
        if code != YES:
            say(f"\n{step.name} ended with exit code {code}; the steps after it were not run.", "fail")
            return code if code in (NO, CANNOT_TELL) else CANNOT_TELL
        done.append(step.name)
    if gpu:
        say(f"\nRan on the GPU: {', '.join(done)}.", "pass")
    else:
        say(
            "\nNo GPU here: compiled for a named architecture, verified in simulation on the CPU; not profiled.",
            "warn",
        )
    return YES


def _shown(command: Sequence[str]) -> str:
    """The command as a person would type it in the repository."""
    words = ["python" if word == sys.executable else word for word in command]
    return " ".join(str(Path(word).relative_to(ROOT)) if word.startswith(f"{ROOT}/") else word for word in words)


if __name__ == "__main__":
    run(main)
