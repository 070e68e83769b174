"""NVIDIA's compute-sanitizer around the same run, and its text read into the simulator's form of finding."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.sim.reports import Finding

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
_PLACE = re.compile(r"(?:at|in) (?:.*? in )?(/?[^\s:]+\.(?:cuh?|h|hpp|cpp)):(\d+)")
_KERNEL = re.compile(r"\bat (?:(?:void|int|float|double|bool) )?([\w:~]+)\s*[<(]")
_API_ERROR = re.compile(r"Program hit (\w+).* on CUDA API call to (\w+)")
# What the runtime says of everything after a kernel failed: the failure itself was told before.
_AFTERMATH = ("LaunchFailure", "IllegalAddress", "IllegalInstruction", "MisalignedAddress", "HardwareStackError")
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
    """Runs `command` under one tool of compute-sanitizer, at most `timeout` seconds: (exit code, what it said).

    The exit code is the command's; 124 means that it, and all that it started, was ended for its time.
    """
    # Padding keeps allocations apart: what lies just behind one is nobody's, not the start of the next.
    extra = {"memcheck": ["--padding", "64"], "racecheck": ["--racecheck-report", "analysis"]}
    start = [str(find_compute_sanitizer()), "--tool", tool, *extra.get(tool, []), "--target-processes", "all"]
    # Kernels are loaded, and patched by the tool, when they are first launched rather than all at the start.
    variables = {"CUDA_MODULE_LOADING": "LAZY", **os.environ, **(environment or {})}
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        # A session of its own: the tool's children must end with it, and a file, unlike a pipe, waits for nobody.
        with subprocess.Popen(
            [*start, *command],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env=variables,
            start_new_session=True,
        ) as running:
            try:
                code = running.wait(timeout)
            except subprocess.TimeoutExpired:
                code = 124
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
        said.seek(0)
        return code, said.read()


def failure(code: int, text: str) -> str:
    """Why what one tool said is no verdict about the program; "" when the tool ran to its end."""
    if code == 124:
        return "took too long"
    for line in text.splitlines():
        if re.search(r"^=========.*(Device not supported|Internal Sanitizer Error|terminated before first)", line):
            return line.strip("= ")
    if not re.search(r"^=========.*SUMMARY", text, re.M):
        return (text.strip().splitlines() or [f"it said nothing and ended with code {code}"])[-1].strip("= ")
    return ""


def kind_of(text: str) -> str | None:
    """The simulator's word for the first line of one of compute-sanitizer's findings; None for other lines."""
    if api := _API_ERROR.search(text):
        error, call = api[1].lower().replace("_", ""), api[2].lower()
        if "assert" in error:
            return "assert"
        if call.startswith(("cudalaunch", "culaunch")) and "invalid" in error:
            return "launch_limit"
        # Libraries ask for what may not be there and go on: no fault of a kernel.
        return "launch" if any(word.lower() in error for word in (*_AFTERMATH, "LaunchFailed")) else None
    patterns = [
        (r"Race reported|hazard", "race"),
        (r"Uninitialized", "uninitialised"),
        (r"misaligned", "misaligned"),
        (r"Invalid __(?:global|shared|local)__|Invalid .*(?:read|write|atomic)", "out_of_bounds"),
        (r"Barrier error detected. Divergent.* in warp", "divergent_warp"),
        (r"Barrier error detected. (?:Divergent|Missing)|Divergent thread", "divergent_barrier"),
        (r"Barrier error detected", "barrier"),
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
            # The frames of the host that follow are where the kernel was launched, not where it went wrong.
            if not following.strip() or not following.startswith("    ") or "host backtrace" in following:
                break
            body.append(following)
        if any("misaligned" in each for each in body[1:]):
            kind = "misaligned"
        places = [m for each in body for m in [_PLACE.search(each)] if m]
        kernel = next((m[1] for each in body for m in [_KERNEL.search(each)] if m), "")
        thread = next((m for each in body for m in [_THREAD.search(each)] if m), None)
        two = kind == "race" and len(places) > 1
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
            other_file=places[1][1] if two else "",
            other_line=int(places[1][2]) if two else 0,
        )
    causes = [each for each in found.values() if each.kind != "launch"]
    return causes or list(found.values())
