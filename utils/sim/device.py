"""NVIDIA's compute-sanitizer around the same run, and its text read into the simulator's form of finding."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.sim.reports import Finding

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PLACE = re.compile(r"(?:at|in) (?:.*? in )?(/?[^\s:]+\.(?:cuh?|h|hpp|cpp)):(\d+)")
_KERNEL = re.compile(r"\bat (?:(?:void|int|float|double|bool) )?([\w:~]+)\s*[<(]")
_THREAD = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")


def find_compute_sanitizer() -> Path:
    """compute-sanitizer on PATH or in the CUDA toolkit. Raises CannotTell where there is none."""
    candidates = [shutil.which("compute-sanitizer") or ""]
    for root in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", "/opt/cuda"):
        if root:
            candidates += [f"{root}/bin/compute-sanitizer", f"{root}/compute-sanitizer/compute-sanitizer"]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise CannotTell(
        "compute-sanitizer was not found; it comes with the CUDA toolkit: set CUDA_HOME to one that has it"
    )


def run_tool(
    tool: str, command: Sequence[str], cwd: Path, timeout: float, environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """Runs `command` under one tool of compute-sanitizer: (exit code, what it said)."""
    extra = ["--racecheck-report", "all"] if tool == "racecheck" else []
    if tool == "initcheck":
        extra = ["--track-unused-memory", "no"]
    full = [str(find_compute_sanitizer()), "--tool", tool, *extra, "--target-processes", "all", *command]
    try:
        done = subprocess.run(
            full,
            cwd=cwd,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, **(environment or {})},
        )
    except subprocess.TimeoutExpired as expired:
        text = expired.stdout or b""
        return 124, text.decode(errors="replace") if isinstance(text, bytes) else text
    return done.returncode, done.stdout + done.stderr


def kind_of(text: str) -> str | None:
    """The simulator's word for the first line of one of compute-sanitizer's findings; None for other lines."""
    patterns = [
        (r"Race reported|hazard", "race"),
        (r"Uninitialized", "uninitialised"),
        (r"misaligned", "misaligned"),
        (r"Invalid __(?:global|shared|local)__|Invalid .*(?:read|write|atomic)", "out_of_bounds"),
        (r"Barrier error detected. (?:Divergent|Missing)|Divergent thread", "divergent_barrier"),
        (r"Barrier error detected", "barrier"),
        (r"Program hit (\w+)", "launch"),
        (r"device-side assert|Assertion", "assert"),
        (r"Stack overflow|Warp illegal|Illegal", "illegal_access"),
    ]
    for pattern, kind in patterns:
        if re.search(pattern, text):
            return kind
    return None


def parse(tool: str, text: str) -> list[Finding]:
    """The findings in what one tool said, one of each kind, kernel and place."""
    lines = [match[1] for match in re.finditer(r"^=========\s?(.*)$", text, re.M)]
    found: dict[tuple[str, str, str, int], Finding] = {}
    for index, line in enumerate(lines):
        if line.startswith("    ") or not line.strip() or "SUMMARY" in line:
            continue
        kind = kind_of(line)
        if kind is None:
            continue
        # A misaligned access is told as an invalid one whose second or third line says so.
        body = [line]
        for following in lines[index + 1 :]:
            if not following.strip() or not following.startswith("    "):
                break
            body.append(following)
        if any("misaligned" in each for each in body[1:]):
            kind = "misaligned"
        places = [m for each in body for m in [_PLACE.search(each)] if m]
        kernel = next((m[1] for each in body for m in [_KERNEL.search(each)] if m), "")
        thread = next((m for each in body for m in [_THREAD.search(each)] if m), None)
        key = (kind, kernel, places[0][1] if places else "", int(places[0][2]) if places else 0)
        if key in found:
            continue
        found[key] = Finding(
            tool=f"compute-sanitizer/{tool}",
            kind=kind,
            message=line.strip(),
            kernel=kernel,
            file=key[2],
            line=key[3],
            thread=(int(thread[1]), int(thread[2]), int(thread[3])) if thread else None,
            block=(int(thread[4]), int(thread[5]), int(thread[6])) if thread else None,
            other_file=places[1][1] if len(places) > 1 else "",
            other_line=int(places[1][2]) if len(places) > 1 else 0,
        )
    return list(found.values())
