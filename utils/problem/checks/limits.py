"""Runs the checks of a file in a child, with a limit on time and memory, and tells how the child ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from utils.problem.checks.finding import FAIL, SKIP, Finding

_CHILD = Path(__file__).with_name("child.py")
# Which check a step belongs to, when the child dies in it.
_STEP = {
    "importing the file": "python",
    "calling get_inputs()": "get-inputs",
    "constructing Model": "constructs",
    "running forward": "runs",
    "holding trivial answers against it": "meaningful",
    "running forward on the GPU": "runs-gpu",
    "constructing ModelNew": "state-dict",
}


def findings_in_child(
    task: dict[str, Any], limit: float, said: Callable[[str], None] = lambda text: None
) -> list[Finding]:
    """The findings of a child process given `task` (see child.py), in the order they were made.

    After `limit` seconds the child and everything it started are killed. A child that is killed, crashes or runs out
    of time leaves one more finding that says so; what it never came to is not there.
    """
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(
            [sys.executable, str(_CHILD), json.dumps({**task, "pipe": writer})],
            pass_fds=[writer],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
        os.close(writer)
        findings, stage, late = _collect(reader, limit, said)
        _end(child, kill=late or stage != "done")
        if stage != "done":
            findings.append(_died(child, stage, late, limit, _tail(printed)))
    return findings


def _collect(reader: int, limit: float, said: Callable[[str], None]) -> tuple[list[Finding], str, bool]:
    until = time.monotonic() + limit
    findings: list[Finding] = []
    stage, rest = "starting", b""
    try:
        while True:
            left = until - time.monotonic()
            if left <= 0 or not select.select([reader], [], [], left)[0]:
                return findings, stage, True
            chunk = os.read(reader, 1 << 16)
            if not chunk:
                return findings, stage, False
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                # The file under test holds this pipe too: what is not of our making is left out.
                try:
                    message = json.loads(line)
                    if "stage" in message:
                        stage = str(message["stage"])
                        said(stage)
                    else:
                        findings.append(Finding(**message["finding"]))
                except (ValueError, TypeError, KeyError):
                    continue
            if stage == "done":
                return findings, stage, False
    finally:
        os.close(reader)


def _end(child: subprocess.Popen[bytes], kill: bool) -> None:
    if not kill:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10)
    # Whatever it started shares its session.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _died(child: subprocess.Popen[bytes], stage: str, late: bool, limit: float, tail: str) -> Finding:
    check = _STEP.get(stage, "python")
    if late:
        status = SKIP if check == "meaningful" else FAIL
        return Finding(
            check,
            status,
            f"it did not end within {limit:.0f} s while {stage}",
            None,
            "make it end, or give --time-limit more seconds; get_small_inputs() makes the check quick",
        )
    code = child.returncode
    if code == -signal.SIGKILL and not late:
        how = "was killed, most likely for taking too much memory,"
    elif code is not None and code < 0:
        how = f"crashed ({signal.Signals(-code).name})"
    else:
        how = f"ended the process (exit code {code})"
    words = f": {tail}" if tail else ""
    return Finding(
        check,
        FAIL,
        f"the file {how} while {stage}{words}",
        None,
        "run it on its own to see more: python -c 'import ...'",
    )


def _tail(printed: Any) -> str:
    printed.seek(0, os.SEEK_END)
    printed.seek(max(0, printed.tell() - 2000))
    lines = [line for line in printed.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
