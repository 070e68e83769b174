"""Cases B, run-time faults: C24 to C33 and C53 of the public collection, each as its users met it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from case_judging import judged, told, write

from utils.judge.devices import choose
from utils.judge.extension import Extension, check_covers
from utils.present.outcome import CannotTell
from utils.problem.solution import find_solution
from utils.problem.workspace import Workspace

AXPBY = """
class Model(nn.Module):
    def forward(self, a, b):
        return 2 * a + 3 * b
def get_inputs():
    return [torch.randn(16, 32), torch.randn(16, 32)]
"""
RIGHT = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        return 2 * a + 3 * b
"""


def test_c24_a_crash_is_told_with_its_call_and_the_next_run_is_clean(tmp_path: Path) -> None:
    crashing = """
    import os
    import signal
    class ModelNew(nn.Module):
        calls = 0
        def forward(self, a, b):
            self.calls += 1
            if self.calls == 3:
                signal.raise_signal(signal.SIGSEGV)
            return 2 * a + 3 * b
    """
    done = judged(tmp_path / "crashing", AXPBY, crashing)
    assert not done.passed
    assert "trial 1 call 3" in told(done) and "the solution's process crashed" in told(done) and "SIGSEGV" in told(done)
    assert "Model.forward" not in told(done)
    assert judged(tmp_path / "clean", AXPBY, RIGHT).passed


PERMUTED = """
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [{inputs}]
"""
FLAT = """
class ModelNew(nn.Module):
    def forward(self, x):
        return (torch.as_strided(x, (x.numel(),), (1,)) * 2).view(x.shape)
"""


@pytest.mark.parametrize(
    "inputs",
    ["torch.randn(8, 16, 32).permute(0, 2, 1)", "torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)"],
)
def test_c26_non_contiguous_inputs_reach_both_sides_and_are_hinted_at(inputs: str, tmp_path: Path) -> None:
    done = judged(tmp_path, PERMUTED.format(inputs=inputs), FLAT)
    assert not done.passed and "elements differ" in told(done)
    assert "input 0 is not contiguous" in told(done)


def test_c26_expanded_inputs_keep_their_strides(tmp_path: Path) -> None:
    problem = PERMUTED.format(inputs="torch.randn(1, 32).expand(16, 32)")
    reading = """
    class ModelNew(nn.Module):
        def forward(self, x):
            assert x.stride() == (0, 1), x.stride()
            return x * 2
    """
    assert judged(tmp_path, problem, reading).passed


def test_c26_a_refusal_of_strides_is_the_solutions_error(tmp_path: Path) -> None:
    refusing = """
    class ModelNew(nn.Module):
        def forward(self, x):
            if not x.is_contiguous():
                raise RuntimeError("x must be contiguous")
            return x * 2
    """
    done = judged(tmp_path, PERMUTED.format(inputs="torch.randn(16, 32).t()"), refusing)
    assert (
        not done.passed
        and "forward raised RuntimeError at model_new.py:" in told(done)
        and "x must be contiguous" in told(done)
    )


@pytest.mark.parametrize(
    "device, words", [("cuda:7", "cuda:7"), ("gpu", "give cuda, cuda:N, cpu or sim"), ("cuda:x", "give cuda, cuda:N")]
)
def test_c29_devices_that_are_not_there_are_named(device: str, words: str, tmp_path: Path) -> None:
    solution = find_solution(Workspace(write(tmp_path, AXPBY)))
    with pytest.raises(CannotTell, match=words):
        choose(device, solution)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_c29_a_second_device_is_used_when_asked_for(tmp_path: Path) -> None:
    done = judged(tmp_path, AXPBY, RIGHT, device="cuda:1")
    assert done.passed, done.reasons


def module(name: str, result: str) -> str:
    return f"class {name}(nn.Module):\n    def forward(self, x):\n        return {result}\n"


DTYPES = {
    "bfloat16": (
        "x * 2",
        "[torch.randn(9).bfloat16()]",
        "(x * 2).float()",
        "has dtype float32, the reference has bfloat16",
    ),
    "bool": ("x > 0", "[torch.randn(9)]", "(x > 0).float()", "has dtype float32, the reference has bool"),
    "int64": ("x.argmax(1)", "[torch.randn(4, 9)]", "x.argmax(1).int()", "has dtype int32, the reference has int64"),
    "complex64": (
        "torch.fft.fft(x)",
        "[torch.randn(9)]",
        "torch.fft.fft(x).real",
        "has dtype float32, the reference has complex64",
    ),
}


@pytest.mark.parametrize("name", DTYPES)
def test_c32_a_dtype_that_differs_is_told_as_a_dtype(name: str, tmp_path: Path) -> None:
    right, inputs, wrong, words = DTYPES[name]
    problem = f"{module('Model', right)}def get_inputs():\n    return {inputs}\n"
    done = judged(tmp_path, problem, module("ModelNew", wrong))
    assert not done.passed and words in told(done)
    assert "elements differ" not in told(done)


def test_c32_one_wrong_index_is_compared_exactly(tmp_path: Path) -> None:
    problem = module("Model", "x.argmax(1) + 1000") + "def get_inputs():\n    return [torch.randn(50, 9)]\n"
    near = """
    class ModelNew(nn.Module):
        def forward(self, x):
            best = x.argmax(1) + 1000
            best[7] += 1
            return best
    """
    done = judged(tmp_path, problem, near)
    assert not done.passed and "1 of 50 elements differ" in told(done)


def test_c33_integer_and_boolean_inputs_arrive_as_they_are(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 8)
        def forward(self, logits, target, mask, count):
            assert target.dtype == torch.int64 and mask.dtype == torch.bool and type(count) is int
            return F.cross_entropy(logits, target), self.table(target) * mask[:, None] * count
    def get_inputs():
        return [torch.randn(32, 10), torch.randint(0, 10, (32,)), torch.rand(32) > 0.5, 3]
    """
    done = judged(tmp_path, problem)
    assert done.passed, done.reasons


def test_c53_binary_code_for_another_gpu_is_named_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match=r"built for sm_80, the device \(H200\) is sm_90; rebuild with 9.0"):
        check_covers(Extension(tmp_path, {"architectures": ["8.0"]}), (9, 0), "H200")
    check_covers(Extension(tmp_path, {"architectures": ["8.0+PTX"]}), (9, 0), "H200")
    check_covers(Extension(tmp_path, {"architectures": ["8.0", "9.0"]}), (9, 0), "H200")
