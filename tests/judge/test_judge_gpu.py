"""What only a GPU can show: streams, faults of the device, launch errors, device memory."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from judging import ADD, LINEAR, judged, kinds, workspace

from utils.judge import reference as references
from utils.judge.thrift import Thrift
from utils.problem.problem import load_problem

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

BIG = ADD.replace("40, 64", "4096, 4096")


def adding(body: str, top: str = "") -> str:
    lines = "".join(f"        {line}\n" for line in body.split("\n"))
    return f"{top}\nclass ModelNew(nn.Module):\n    def forward(self, a, b):\n{lines}"


# A kernel compiled at run time by the driver's own compiler: quick, and free of torch's launch checks.
WILD = """
SOURCE = r'''
extern "C" __global__ void wild(float* out) { out[(1LL << 40) + threadIdx.x] = 1.0f; }
'''
kernel = torch.cuda._compile_kernel(SOURCE, "wild")
"""


@pytest.mark.parametrize("problem", [ADD, LINEAR, BIG])
def test_an_honest_solution_passes(problem: str, tmp_path: Path) -> None:
    solution = problem.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    done = judged(tmp_path, problem, solution, device="cuda", trials=3)
    assert done.passed, done.reasons
    assert done.precision["class"] == "fp32"


def test_half_precision_inside_is_classed(tmp_path: Path) -> None:
    body = "    def __init__(self, n):\n        super().__init__()\n        self.lin = nn.Linear(n, n)\n"
    body += "    def forward(self, x):\n        w = self.lin.weight.bfloat16()\n"
    body += "        return (x.bfloat16() @ w.t()).float().add(self.lin.bias).relu()\n"
    done = judged(tmp_path, LINEAR, "class ModelNew(nn.Module):\n" + body, device="cuda", atol=5e-2, rtol=5e-2)
    assert done.precision["class"] in ("bf16", "worse")


@pytest.mark.parametrize(
    "stream", ["torch.cuda.Stream()", "torch.cuda.default_stream()", "torch.cuda.ExternalStream(0)"]
)
def test_a_launch_on_another_stream_is_seen(stream: str, tmp_path: Path) -> None:
    done = judged(tmp_path, BIG, adding(f"with torch.cuda.stream({stream}):\n    return a + 2 * b"), device="cuda")
    assert not done.passed
    assert kinds(done) & {"stream_order", "unwritten", "values"}, done.reasons


def test_a_joined_side_stream_is_fine(tmp_path: Path) -> None:
    body = """s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    y = a + 2 * b
torch.cuda.current_stream().wait_stream(s)
y.record_stream(torch.cuda.current_stream())
return y"""
    done = judged(tmp_path, BIG, adding(body), device="cuda")
    assert done.passed, done.reasons


def test_a_current_stream_left_changed_does_not_fool_the_judge(tmp_path: Path) -> None:
    done = judged(tmp_path, BIG, adding("torch.cuda.set_stream(torch.cuda.Stream())\nreturn a + 2 * b"), device="cuda")
    assert not done.passed


def test_a_cuda_graph_is_fine(tmp_path: Path) -> None:
    body = """key = (a.data_ptr(), a.stride(), b.data_ptr(), b.stride())
if key not in self.graphs:
    torch.add(a, b, alpha=2)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = torch.add(a, b, alpha=2)
    self.graphs[key] = (g, y)
g, y = self.graphs[key]
g.replay()
return y.clone()"""
    solution = adding(body).replace("    def forward", "    graphs = {}\n    def forward")
    done = judged(tmp_path, ADD, solution, device="cuda")
    assert done.passed, done.reasons


def test_memory_that_nothing_wrote(tmp_path: Path) -> None:
    done = judged(tmp_path, BIG, adding("return torch.empty_like(a)"), device="cuda")
    assert "unwritten" in kinds(done), done.reasons


def test_an_illegal_access_is_named_and_leaves_the_gpu_clean(tmp_path: Path) -> None:
    body = "y = a + 2 * b\nkernel((1, 1, 1), (32, 1, 1), (y,))\nreturn y"
    done = judged(tmp_path / "bad", ADD, adding(body, WILD), device="cuda")
    assert kinds(done) == {"gpu_fault"}, done.reasons
    assert "ModelNew crashed the GPU context" in done.reasons[0] and "trial 1 call 1" in done.reasons[0]
    assert float(torch.ones(8, device="cuda").sum()) == 8
    assert judged(tmp_path / "good", ADD, adding("return a + 2 * b"), device="cuda").passed


def test_a_device_assertion_is_named(tmp_path: Path) -> None:
    body = "y = a + 2 * b\ni = torch.full((4,), 1 << 30, device=a.device)\nreturn y + a[i].sum() * 0"
    done = judged(tmp_path, ADD, adding(body), device="cuda")
    assert kinds(done) == {"gpu_fault"} and "device-side assert" in done.reasons[0]


def test_a_fault_on_a_later_call_names_the_call(tmp_path: Path) -> None:
    body = "self.n += 1\ny = a + 2 * b\nif self.n == 3:\n    kernel((1, 1, 1), (32, 1, 1), (y,))\nreturn y"
    solution = adding(body, WILD).replace("    def forward", "    n = 0\n    def forward")
    done = judged(tmp_path, ADD, solution, device="cuda")
    assert kinds(done) == {"gpu_fault"} and done.reasons[0].startswith("trial 1 call 3"), done.reasons


def test_a_refused_launch_that_nobody_checked(tmp_path: Path) -> None:
    # Any refused call leaves its error in torch's runtime, as a launch with too many threads would.
    body = """import ctypes
rt = ctypes.CDLL([l.split()[-1] for l in open("/proc/self/maps") if "libcudart" in l][0])
y = a + 2 * b
rt.cudaMemcpyAsync(ctypes.c_void_p(1), ctypes.c_void_p(2), ctypes.c_size_t(4), 99, ctypes.c_void_p(0))
return y"""
    done = judged(tmp_path, ADD, adding(body), device="cuda")
    assert kinds(done) == {"launch", "rule"}, done.reasons  # loading a library by hand breaks a rule


def test_more_device_memory_than_there_is(tmp_path: Path) -> None:
    body = "self.hoard = torch.empty(1 << 46, dtype=torch.uint8, device=a.device)\nreturn a + 2 * b"
    done = judged(tmp_path, ADD, adding(body), device="cuda")
    assert kinds(done) == {"out_of_memory"}, done.reasons


@pytest.mark.parametrize(("share", "thrift"), [(0.065, Thrift.DEVICE), (0.09, Thrift.HOST)])
def test_large_inputs_are_judged_with_less_memory(share: float, thrift: Thrift, tmp_path: Path) -> None:
    # Most of the memory is taken, so that little counts as much.
    hoard = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.9), dtype=torch.uint8, device="cuda")
    free = torch.cuda.mem_get_info()[0]
    rows = max(1, int(free * share / 4) >> 20)
    problem = f"""
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.ones({rows}, 1 << 20)]
"""
    solution = "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x + x\n"
    done = judged(tmp_path, problem, solution, device="cuda", trials=1, timeout=60.0)
    del hoard
    torch.cuda.empty_cache()
    assert done.passed, done.reasons
    assert any(finding.kind == "memory" for finding in done.findings.of("note"))
    assert done.study is not None and done.study.thrift is thrift


def test_placed_inputs_hold_the_same_values_in_the_same_layout() -> None:
    base = torch.randn(6, 8)
    given = [base, base.t(), base[1::2, 3:], torch.ones(3).expand(4, 3), base]
    there = references.placed(given, torch.device("cuda:0"))
    for before, after in zip(given, there, strict=True):
        assert after.is_cuda and after.stride() == before.stride() and torch.equal(after.cpu(), before)
    there[0][1, 3] = 7.0
    assert there[1][3, 1] == 7.0 and there[2][0, 0] == 7.0 and there[4] is there[0] and base[1, 3] != 7.0


def test_a_context_opened_early_is_the_one_that_torch_uses() -> None:
    code = """
from utils.native import early
early.open_context("cuda:0")
import torch
assert torch.ones(8, device="cuda:0").sum() == 8
print(torch.cuda.get_device_name(0))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip() == torch.cuda.get_device_name(0), done.stderr


def test_aliased_inputs_reach_forward_as_they_are(tmp_path: Path) -> None:
    problem = """
class Model(nn.Module):
    def forward(self, a, b, c):
        return a + 2 * b + c
def get_inputs():
    a = torch.randn(64, 64)
    return [a, a.t(), a]
"""
    solution = """
class ModelNew(nn.Module):
    def forward(self, a, b, c):
        assert a.data_ptr() == b.data_ptr() == c.data_ptr() and b.stride() == (1, 64)
        return a + 2 * b + c
"""
    done = judged(tmp_path, problem, solution, device="cuda", trials=4)
    assert done.passed, done.reasons


def test_large_inputs_are_drawn_on_the_device_and_the_same_for_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load_problem(workspace(tmp_path, LINEAR, "") / "model.py")
    monkeypatch.setattr(references, "_LARGE", 1)
    host = references.drawn(problem, 3, False)
    one, two = (references.drawn(problem, 3, False, device=torch.device("cuda")) for _ in range(2))
    assert one[0].device.type == "cuda" and one[0].shape == host[0].shape
    assert torch.equal(one[0], two[0]) and not torch.equal(one[0].cpu(), host[0])


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_another_device_than_the_first(tmp_path: Path) -> None:
    done = judged(tmp_path, LINEAR, LINEAR.split("def get_inputs")[0].replace("Model(", "ModelNew("), device="cuda:1")
    assert done.passed, done.reasons


def test_a_verification_takes_seconds(tmp_path: Path) -> None:
    begun = time.monotonic()
    assert judged(
        tmp_path, LINEAR, LINEAR.split("def get_inputs")[0].replace("Model(", "ModelNew("), device="cuda"
    ).passed
    assert time.monotonic() - begun < 60
