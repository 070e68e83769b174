"""The record of operators: compute with dispatch modes off is in it, what torch does on its own account is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import _disable_current_modes

from utils.judge.recorder import Recorder
from utils.problem.solution import Solution
from utils.rules import RULES, dispatch_violations, split


def broken(recorder: Recorder) -> list[str]:
    solution = Solution("python", Path(__file__), None)
    return sorted(violation.evidence for violation in dispatch_violations(recorder.ops(), solution))


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(8, 8)


def test_compute_with_modes_disabled_is_recorded(x):
    with Recorder("forward", "/nowhere") as recorder, _disable_current_modes():
        torch.relu(x @ x)
    assert broken(recorder) == ["aten::matmul", "aten::relu"]


def test_compute_hidden_in_a_named_range_is_recorded(x):
    named = torch.autograd.profiler.record_function("own::range")
    with Recorder("forward", "/nowhere") as recorder, _disable_current_modes(), named:
        torch.relu(x)
    assert "aten::relu" in broken(recorder)


def test_a_record_that_is_switched_off_is_a_breach_in_every_mode(x):
    with Recorder("forward", "/nowhere") as recorder:
        torch._C._autograd._disable_profiler_legacy()
        torch.empty(3)
    violations = dispatch_violations(recorder.ops(), Solution("python", Path(__file__), None))
    assert [violation.rule for violation in violations] == ["internals"]
    assert split(violations, "relaxed")[0] == violations
    assert not RULES["internals"].policy


def test_compute_that_the_mode_sees_is_recorded_once(x):
    with Recorder("forward", "/nowhere") as recorder:
        torch.nn.functional.relu(x)
    assert [(entry["op"], entry["count"]) for entry in recorder.ops()] == [("aten::relu", 1)]


def test_an_error_in_forward_leaves_nothing_running(x):
    with pytest.raises(LookupError), Recorder("forward", "/nowhere"):
        raise LookupError
    with Recorder("forward", "/nowhere") as recorder:
        x.t()
    assert [entry["op"] for entry in recorder.ops()] == ["aten::t"]


def test_creation_views_and_printing_break_nothing(x):
    with Recorder("forward", "/nowhere") as recorder:
        for value in (torch.tensor([1.0, 2.0]), torch.as_tensor([1, 2]), torch.tensor([1.0], device="meta"), x.half()):
            value.contiguous().reshape(-1)
    assert broken(recorder) == ["aten::_to_copy"]  # x.half(), a cast
    with Recorder("forward", "/nowhere") as recorder:
        for value in (x * 1e9, torch.arange(5000), torch.ones(3, dtype=torch.bool), torch.tensor(3.0)):
            with _disable_current_modes():
                str(value)
    assert broken(recorder) == ["aten::mul"]  # x * 1e9 alone
