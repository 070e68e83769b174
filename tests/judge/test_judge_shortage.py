"""Memory that runs out on the judge's side: stated, tried again with less, and never a failure of the solution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from judging import judged

from utils.judge import study, trials, verify
from utils.judge.comparing import compare_result
from utils.judge.failure import RunnerFailed
from utils.judge.session import Session
from utils.judge.shortage import is_shortage
from utils.judge.thrift import Thrift, enough, needed
from utils.judge.verify import Verification
from utils.native import library
from utils.native.compare import compare
from utils.present.outcome import CannotTell

# torch._calls, which the tests put there, counts Model's calls over both runs where there are two.
PROBLEM = """
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
    def forward(self, x):
        torch._calls.append(x.dtype)
        if CONDITION:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return torch.relu(self.lin(x))
def get_inputs():
    return [torch.randn(16, 32)]
def get_init_inputs():
    return [32]
"""
SOLUTION = """
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
    def forward(self, x):
        return torch.relu(self.lin(x))
"""


@pytest.fixture(autouse=True)
def calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_calls", [], raising=False)


def short(condition: str) -> str:
    return PROBLEM.replace("CONDITION", condition)


def failing(original: Callable[..., Any], times: int, after: int = 0) -> Callable[..., Any]:
    """`original`, but that `times` calls after the first `after` find no memory."""
    calls = 0

    def function(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if after < calls <= after + times:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return original(*args, **kwargs)

    return function


def said_what_is_missing(done: Verification) -> bool:
    return any(finding.kind == "memory" and "not done are" in finding.sentence for finding in done.findings.of("note"))


def test_fp64_that_does_not_fit_is_stated(tmp_path: Path) -> None:
    done = judged(tmp_path, short("x.dtype == torch.float64"), SOLUTION)
    assert done.passed, done.reasons
    assert done.precision == {"class": "unknown", "why": "fp64 does not fit into memory"}
    # Everything else was done.
    assert not said_what_is_missing(done)


def test_a_comparison_with_fp64_that_does_not_fit_is_stated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def wide(expected: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if expected.dtype == torch.float64:
            raise library.NativeError(library.OUT_OF_MEMORY, "no memory on the device")
        return compare(expected, *args, **kwargs)

    monkeypatch.setattr(study, "compare", wide)
    done = judged(tmp_path, short("False"), SOLUTION)
    assert done.passed and done.precision["why"] == "fp64 does not fit into memory"


@pytest.mark.parametrize("call", [1, 3, 4, 5, 9])
def test_a_reference_that_finds_no_memory_once_is_asked_again_with_less(call: int, tmp_path: Path) -> None:
    """In the study: the first answer, that to other inputs, that with other weights; in the trials."""
    done = judged(tmp_path, short(f"len(torch._calls) == {call}"), SOLUTION)
    assert done.passed, done.reasons
    assert said_what_is_missing(done)
    assert done.precision["why"] == "the device's memory is too small for another copy in fp64"


def test_a_reference_that_never_finds_memory_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="ran out of memory: CUDA out of memory"):
        judged(tmp_path, short("True"), SOLUTION)


@pytest.mark.parametrize("after", [0, 3])
def test_a_comparison_that_finds_no_memory_once_is_made_with_less(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "compare_result", failing(compare_result, 1, after))
    done = judged(tmp_path, short("False"), SOLUTION)
    assert done.passed and said_what_is_missing(done)


def test_what_finds_no_memory_twice_is_tried_with_values_waiting_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []
    put = Session.put

    def noted(self: Session, *rest: Any, **more: Any) -> Any:
        used.append(self.thrift)
        return put(self, *rest, **more)

    monkeypatch.setattr(Session, "put", noted)
    monkeypatch.setattr(trials, "compare_result", failing(compare_result, 2))
    done = judged(tmp_path, short("False"), SOLUTION, trials=1)
    assert done.passed and said_what_is_missing(done)
    assert used[:2] == [Thrift.NONE, Thrift.DEVICE] and set(used[2:]) == {Thrift.HOST}


def test_a_comparison_that_never_finds_memory_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "compare_result", failing(compare_result, 1000))
    with pytest.raises(CannotTell, match="the judge itself ran out of memory"):
        judged(tmp_path, short("False"), SOLUTION)


def test_weights_that_find_no_memory_once_are_drawn_with_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials.Reference, "redraw", failing(trials.Reference.redraw, 1))
    done = judged(tmp_path, short("False"), SOLUTION)
    assert done.passed and said_what_is_missing(done)


def test_a_wrong_solution_fails_in_the_second_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "compare_result", failing(compare_result, 1))
    done = judged(tmp_path, short("False"), SOLUTION.replace("torch.relu", "torch.tanh"))
    assert not done.passed


def test_the_word_of_the_runner_alone_turns_no_check_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raising = 'raise torch.OutOfMemoryError("CUDA out of memory")\n        return '
    done = judged(tmp_path / "small", short("False"), SOLUTION.replace("return ", raising))
    assert not done.passed and {finding.kind for finding in done.findings.of("fail")} == {"out_of_memory"}
    assert not said_what_is_missing(done)
    # What the judge holds decides.
    monkeypatch.setattr(verify, "_LARGE", 0.0)
    done = judged(tmp_path / "large", short("False"), SOLUTION.replace("return ", raising))
    assert not done.passed and said_what_is_missing(done)


def test_thrift_is_as_little_as_the_room_allows() -> None:
    inputs, outputs = 7 << 30, 3 << 30
    full, less = needed(Thrift.NONE, inputs, outputs), needed(Thrift.DEVICE, inputs, outputs)
    assert full > less > inputs + outputs
    assert enough(inputs, outputs, full) is Thrift.NONE
    assert enough(inputs, outputs, full - 1) is enough(inputs, outputs, less) is Thrift.DEVICE
    assert enough(inputs, outputs, less - 1) is enough(inputs, outputs, 0) is Thrift.HOST
    # What was found out before stands.
    assert enough(0, 0, full, Thrift.DEVICE) is Thrift.DEVICE and enough(0, 0, full, Thrift.HOST) is Thrift.HOST
    assert [thrift.next for thrift in Thrift] == [Thrift.DEVICE, Thrift.HOST, Thrift.HOST]


@pytest.mark.parametrize(
    ("error", "shortage"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"), True),
        (MemoryError(), True),
        (library.NativeError(library.OUT_OF_MEMORY, "x"), True),
        (CannotTell("out of device memory for the arena: needs 3 GiB"), True),
        (library.NativeError(700, "an illegal memory access"), False),
        (RuntimeError("shape mismatch"), False),
        (RunnerFailed("harness", "the runner itself failed: OutOfMemoryError: CUDA out of memory", "call"), True),
    ],
)
def test_what_counts_as_a_shortage(error: Exception, shortage: bool) -> None:
    assert is_shortage(error) is shortage
