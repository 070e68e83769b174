"""compute-sanitizer's text, read into the simulator's form of finding."""

from __future__ import annotations

from utils.sim.device import parse

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at off_by_one_read(const float *, float *, int)+0x90 in /src/planted.cu:178
=========     by thread (63,0,0) in block (3,0,0)
=========     Address 0x7f0000000400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f0000000000 of size 1024 bytes
=========
========= Invalid __global__ read of size 16 bytes
=========     at misaligned_load(const float *, float *, int)+0x60 in /src/planted.cu:315
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f0000000004 is misaligned
=========
========= ERROR SUMMARY: 2 errors
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
