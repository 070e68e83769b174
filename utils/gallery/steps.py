"""The commands of the workbench, run on one workspace of the gallery, each in a process of its own.

Every command writes its record into build/gallery/ of the workspace, and beside it a stamp of what it was about:
sources, problem, solution and settings. A record whose stamp still fits is not made again, so a run that was cut short
goes on where it stopped. A command that could not tell (exit code 2) left no answer, and is run again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.build.digest import file_sha256, sources_digest
from utils.present.outcome import CANNOT_TELL
from utils.problem.workspace import ROOT, Workspace

EXAMPLES = ROOT / "examples"
_KEPT_LINES = 20  # of a command's output, where it left no record


@dataclass(frozen=True)
class Step:
    """One command: what it is called, and its command line without --json."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What a step left: its record, or (where it ended without one) the end of what it printed."""

    step: str
    exit_code: int
    record: dict[str, Any] | None
    output: str
    resumed: bool

    @property
    def reason(self) -> str:
        """Why it did not succeed, in one line; "" when it did."""
        if self.exit_code == 0:
            return ""
        reasons = (self.record or {}).get("reasons") or self.output.splitlines()[-1:] or ["no reason given"]
        return f"{self.step}: {reasons[0]}"


def gallery_names() -> list[str]:
    """The workspaces of the gallery by name: those with a problem, a solution and kernels."""
    found = []
    for folder in sorted(EXAMPLES.iterdir()) if EXAMPLES.is_dir() else []:
        workspace = Workspace(folder)
        if workspace.model.is_file() and workspace.model_new.is_file() and workspace.kernels.is_dir():
            found.append(folder.name)
    return found


def compile_step(workspace: Workspace, simulated: bool) -> Step:
    command = ["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(workspace.root)]
    return Step("compile", tuple(command + (["--sim"] if simulated else [])))


def check_step(workspace: Workspace) -> Step:
    return Step("check", (sys.executable, "-m", "utils.check", "--workspace", str(workspace.root), "--device", "cpu"))


def verdict_step(workspace: Workspace, simulated: bool, extra: Sequence[str]) -> Step:
    """Profiling, which verifies first; or verification on the simulator."""
    if simulated:
        command = ["utils.verification", "--workspace", str(workspace.root), "--device", "sim"]
    else:
        command = ["utils.profiling", "--workspace", str(workspace.root)]
    return Step("verify" if simulated else "profile", (sys.executable, "-m", *command, *extra))


def stamp(workspace: Workspace, step: Step) -> str:
    """What a record of `step` is about: it is void when this changes."""
    about = [sources_digest(workspace), file_sha256(workspace.model), file_sha256(workspace.model_new), *step.command]
    return "\n".join(about)


def run_step(
    workspace: Workspace, step: Step, *, fresh: bool, timeout: float, environment: Mapping[str, str] | None = None
) -> Done:
    """Runs the step, or takes its record from an earlier run. Never raises for what the command does.

    environment: added to that of this process; a record is as good wherever the step ran.
    """
    folder = workspace.build / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    record_path = folder / f"{step.name}.json"
    stamp_path = folder / f"{step.name}.stamp"
    wanted = stamp(workspace, step)
    if not fresh and stamp_path.is_file() and stamp_path.read_text(encoding="utf-8") == wanted:
        record = _read(record_path)
        if record is not None and record.get("exit_code") != CANNOT_TELL:
            return Done(step.name, int(record["exit_code"]), record, "", True)

    record_path.unlink(missing_ok=True)
    stamp_path.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [*step.command, "--json", str(record_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as expired:
        code, output = CANNOT_TELL, f"{_text(expired.stdout)}\nstopped after {timeout:.0f} s"
    output = "\n".join(output.strip().splitlines()[-_KEPT_LINES:])
    record = _read(record_path)
    if record is not None and record.get("exit_code") == code:
        stamp_path.write_text(wanted, encoding="utf-8")
    return Done(step.name, code, record, output, False)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "exit_code" in record else None


def _text(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""
