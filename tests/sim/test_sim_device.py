"""compute-sanitizer's text, read into the simulator's form of finding."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from utils.sim.device import failure, kind_of, parse, run_tool

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at off_by_one_read(const float *, float *, int)+0x90 in /src/planted.cu:178
=========     by thread (63,0,0) in block (3,0,0)
=========     Address 0x7f0000000400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f0000000000 of size 1024 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: off_by_one_read_run in /src/planted.cu:180 [0x1234] in planted.so
=========
========= Invalid __global__ read of size 16 bytes
=========     at misaligned_load(const float *, float *, int)+0x60 in /src/planted.cu:315
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000004 is misaligned
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "x" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 3 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at missing_barrier(const float *, float *)+0xd0 in /s/planted.cu:18
=========     and Read access at missing_barrier(const float *, float *, int)+0x120 in /src/planted.cu:19 [992 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at divergent_barrier(const float *, float *, int)+0x210 in /src/planted.cu:350
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""


def test_memcheck_tells_place_thread_and_misalignment() -> None:
    first, second = parse("memcheck", MEMCHECK)
    assert (first.kind, first.kernel, first.file, first.line) == (
        "out_of_bounds",
        "off_by_one_read",
        "/src/planted.cu",
        178,
    )
    assert first.other_line == 0
    assert first.thread == (63, 0, 0) and first.block == (3, 0, 0)
    assert (second.kind, second.line) == ("misaligned", 315)


def test_racecheck_tells_both_places() -> None:
    (race,) = parse("racecheck", RACECHECK)
    assert (race.kind, race.line, race.other_line) == ("race", 18, 19)
    assert race.tool == "compute-sanitizer/racecheck"


def test_synccheck_and_clean_output() -> None:
    (barrier,) = parse("synccheck", SYNCCHECK)
    assert (barrier.kind, barrier.line) == ("divergent_barrier", 350)
    assert parse("memcheck", "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == []
    assert parse("racecheck", "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n") == []


def test_errors_of_calls_are_findings_only_where_a_kernel_is_at_fault() -> None:
    launch = 'Program hit cudaErrorInvalidConfiguration (error 9) due to "x" on CUDA API call to cudaLaunchKernel.'
    assert kind_of(launch) == "launch_limit"
    assert kind_of('Program hit cudaErrorAssert (error 710) due to "x" on CUDA API call to cudaFree.') == "assert"
    assert kind_of('Program hit cudaErrorUnknown (error 999) due to "x" on CUDA API call to cudaMalloc.') is None


def test_a_tool_that_did_not_run_is_no_verdict() -> None:
    summary = "========= ERROR SUMMARY: 0 errors\n"
    assert failure(0, summary) == ""
    assert "Device not supported" in failure(1, f"========= Error: Device not supported.\n{summary}")
    assert failure(124, summary) == "took too long"
    assert failure(1, "Traceback\nImportError: no torch\n") == "ImportError: no torch"


def test_a_run_out_of_time_ends_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "compute-sanitizer"
    started = tmp_path / "started"
    tool.write_text(
        f"#!/bin/sh\necho =========; {sys.executable} -c 'import time; time.sleep(60)' & echo $! > {started}; wait"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    start = time.monotonic()
    code, text = run_tool("memcheck", ["true"], tmp_path, 1.0)
    assert code == 124 and text.startswith("=========") and time.monotonic() - start < 20
    child = Path(f"/proc/{started.read_text().strip()}/stat")
    time.sleep(0.2)
    assert not child.exists() or child.read_text().split()[2] == "Z"
