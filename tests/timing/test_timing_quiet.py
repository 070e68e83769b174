"""Turns at a quiet GPU: the lock itself, and the compiler's timings taking it."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from utils.problem.workspace import ROOT
from utils.timing.quiet import Quiet


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lock"


def free(place):
    """Whether nobody holds the lock now."""
    asked = Quiet(place, patience=0.0)
    with asked.hold():
        pass
    asked.close()
    return asked.missed == 0


def test_a_turn_waits_for_the_one_before_it_and_counts_the_wait(place):
    one, two = Quiet(place), Quiet(place)
    order = []

    def second():
        with two.hold():
            order.append("two")

    with one.hold():
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.1)
        order.append("one")
    thread.join()
    assert order == ["one", "two"]
    assert two.waited >= 0.09
    assert (one.missed, two.missed) == (0, 0)
    assert one.waited < two.waited
    assert one.held >= 0.09


def test_a_turn_inside_a_turn_gives_nothing_back_early(place):
    quiet = Quiet(place)
    with quiet.hold():
        with quiet.hold():
            pass
        assert not free(place)
    assert free(place)


def test_patience_is_for_all_waits_together_and_then_turns_are_missed(place):
    holder, waiting = Quiet(place), Quiet(place, patience=0.1)
    with holder.hold():
        begun = time.monotonic()
        for _ in range(3):
            with waiting.hold():
                pass
        assert 0.1 <= time.monotonic() - begun < 1.0
        assert waiting.missed == 3
        # Not having had the lock, it must not have given the holder's away.
        assert not free(place)


def test_a_holder_that_dies_gives_its_turn_back(place):
    code = (
        "import os, sys, pathlib; from utils.timing.quiet import Quiet\n"
        "with Quiet(pathlib.Path(sys.argv[1])).hold(): print('held', flush=True); sys.stdin.read(1); os._exit(1)"
    )
    command = [sys.executable, "-c", code, str(place)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert not free(place)
        holder.stdin.close()
        holder.wait(10)
    assert free(place)


def test_every_timing_of_the_compiler_takes_a_turn(place, monkeypatch):
    async_compile = pytest.importorskip("torch._inductor.async_compile")
    from torch._inductor.runtime.benchmarking import benchmarker

    from utils.timing.baseline_worker import _load_compiler

    seen = []

    def measure(call, **keywords):
        seen.append((keywords, free(place)))
        return 0.5

    monkeypatch.setattr(async_compile, "maybe_warm_pool", lambda: None)
    monkeypatch.setattr(benchmarker, "benchmark_gpu", measure)
    _load_compiler(Quiet(place))
    # By either of the two ways in: what chooses among kernels calls `benchmark`, what pads matrices `benchmark_gpu`.
    assert benchmarker.benchmark(lambda: None, device="cuda") == 0.5
    assert benchmarker.benchmark_gpu(lambda: None, rep=40) == 0.5
    assert [quiet for _, quiet in seen] == [False, False]
    assert seen[1][0] == {"rep": 40}
    assert free(place)


def test_no_worker_of_the_compiler_is_left_to_burn_the_processor():
    async_compile = pytest.importorskip("torch._inductor.async_compile")

    from utils.judge.processes import descendants
    from utils.timing.baseline_worker import _end_compile_workers

    async_compile.maybe_warm_pool()
    (pool,) = async_compile._pool_set
    started = descendants(pool.process.pid)
    _end_compile_workers()
    assert pool.process.poll() is not None
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    # A compilation that comes after all gets new ones.
    async_compile.maybe_warm_pool()
    (other,) = async_compile._pool_set
    assert other.process.poll() is None
    _end_compile_workers()
