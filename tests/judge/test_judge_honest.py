"""Honest solutions pass: models as people write them, each answered by the same computation written again."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import ADD, LINEAR, judged, kinds

from utils.judge.thrift import Thrift

HONEST = {
    "nested outputs with None, numbers and text": """
class Model(nn.Module):
    def forward(self, x, scale=2.0, mask=None):
        y = x * scale
        return {"y": y, "aux": (y.sum(), [y > 0, None]), "n": 3, "s": "mean", "f": float("nan")}
def get_inputs():
    return [torch.randn(4, 5), 1.5, None]
""",
    "lists, tuples and dicts as inputs": """
class Model(nn.Module):
    def forward(self, xs, pair, table):
        return xs[0] + xs[1] * pair[1] + table["bias"][0]
def get_inputs():
    return [[torch.randn(3, 4), torch.randn(3, 4)], (1, 2.5), {"bias": [torch.randn(4)]}]
""",
    "integers and booleans": """
class Model(nn.Module):
    def forward(self, logits, target, keep):
        best = logits.argmax(1)
        return torch.nn.functional.cross_entropy(logits, target), best, (best == target) & keep, best.to(torch.uint8)
def get_inputs():
    return [torch.randn(32, 10) * 4, torch.randint(0, 10, (32,)), torch.rand(32) > 0.5]
""",
    "half, bfloat16, double and complex": """
class Model(nn.Module):
    def forward(self, h, b, d, c):
        return h * 2, b + 1, d.sin(), torch.fft.fft(c), c.abs()
def get_inputs():
    x = torch.randn(9)
    return [x.half(), x.bfloat16(), x.double(), torch.randn(9, dtype=torch.complex64)]
""",
    "scalars, 0-d and empty tensors": """
class Model(nn.Module):
    def forward(self, x, n, empty):
        return x * n, x.new_zeros(0, 3), empty * 2, x.sum().item() > 1e9
def get_inputs():
    return [torch.tensor(2.5), 3, torch.randn(0, 4)]
""",
    "views, expanded and transposed inputs, one given twice": """
class Model(nn.Module):
    def forward(self, x, y, z, again):
        return x @ y + z + again
def get_inputs():
    t = torch.randn(6, 6)
    return [t.t(), torch.randn(12, 12)[::2, ::2], torch.randn(6, 1).expand(6, 6), t.t()]
""",
    "NaN and Inf where the reference has them": """
class Model(nn.Module):
    def forward(self, x):
        return torch.log(x), 1 / torch.relu(x)
def get_inputs():
    return [torch.randn(50)]
""",
    "hidden state kept between calls": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = None
    def forward(self, x):
        self.h = x if self.h is None else 0.5 * self.h + x
        return self.h * 1.0
def get_inputs():
    return [torch.randn(8)]
""",
    "a buffer that changes in eval mode": """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(5))
    def forward(self, x):
        self.seen += 1
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return x - self.mean
def get_inputs():
    return [torch.randn(7, 5)]
""",
    "random numbers drawn in forward": """
class Model(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)
def get_inputs():
    return [torch.randn(20)]
""",
    "an input changed in place, and returned": """
class Model(nn.Module):
    def forward(self, x):
        return x.mul_(3)
def get_inputs():
    return [torch.randn(20)]
""",
    "a result that is a view of the input": """
class Model(nn.Module):
    def forward(self, x):
        return x.view(-1), x[0]
def get_inputs():
    return [torch.randn(4, 6)]
""",
    "shapes that change from draw to draw": """
class Model(nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(int(torch.randint(2, 9, ())), 3)]
""",
    "a parametrisation, tied weights and random attributes": """
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a = nn.utils.parametrizations.weight_norm(nn.Linear(n, n))
        self.b = nn.Linear(n, n, bias=False)
        self.c = nn.Linear(n, n, bias=False)
        self.c.weight = self.b.weight
        self.shift = torch.randn(n)
    def forward(self, x):
        return self.c(self.b(self.a(x))) + self.shift.to(x.device)
def get_inputs():
    return [torch.randn(3, 6)]
def get_init_inputs():
    return [6]
""",
    "constructor arguments of every kind": """
class Model(nn.Module):
    def __init__(self, sizes, table, dtype, name, flag):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b, dtype=dtype) for a, b in zip(sizes, sizes[1:]))
        self.register_buffer("table", table.clone())
        self.flag = flag and name == "on"
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x + self.table if self.flag else x
def get_inputs():
    return [torch.randn(3, 4, dtype=torch.float64)]
def get_init_inputs():
    return [[4, 5, 2], torch.randn(2, dtype=torch.float64), torch.float64, "on", True]
""",
}


@pytest.mark.parametrize("name", HONEST)
def test_the_same_computation_passes(name: str, tmp_path: Path) -> None:
    problem = HONEST[name]
    solution = problem.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    done = judged(tmp_path, problem, solution)
    assert done.passed, done.reasons


BATCH_NORM = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.4)
    def forward(self, x):
        return self.drop(self.bn(x))
def get_inputs():
    return [torch.randn(64, 8)]
"""


@pytest.mark.parametrize("train", [False, True])
def test_batch_norm_and_dropout(train: bool, tmp_path: Path) -> None:
    solution = BATCH_NORM.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    done = judged(tmp_path, BATCH_NORM, solution, train=train)
    assert done.passed, done.reasons


def test_dropout_with_a_generator_of_its_own_is_compared_as_a_distribution(tmp_path: Path) -> None:
    own = """
g = torch.Generator()
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(8)
    def forward(self, x):
        y = self.bn(x)
        return y * (torch.rand(y.shape, generator=g) >= 0.4) / 0.6
"""
    done = judged(tmp_path / "right", BATCH_NORM, own, train=True)
    assert done.passed, done.reasons
    assert any("draws of each have the same means" in str(finding) for finding in done.findings.of("note"))
    wrong = judged(tmp_path / "wrong", BATCH_NORM, own.replace("0.4", "0.2").replace("0.6", "0.8"), train=True)
    assert not wrong.passed and "random" in kinds(wrong)


def test_weights_initialised_in_another_order_pass(tmp_path: Path) -> None:
    problem = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
def get_inputs():
    return [torch.randn(6, 4)]
"""
    solution = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = nn.Linear(4, 4)
        self.a = nn.Linear(4, 4)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
"""
    assert judged(tmp_path, problem, solution).passed


def test_a_refusal_in_words_of_layouts_get_inputs_never_gives_is_noted(tmp_path: Path) -> None:
    solution = """
class ModelNew(nn.Module):
    def forward(self, a, b):
        if not a.is_contiguous():
            raise RuntimeError("a must be contiguous")
        return a + 2 * b
"""
    done = judged(tmp_path, ADD, solution)
    assert done.passed, done.reasons
    assert any("a must be contiguous" in str(finding) for finding in done.findings.of("note"))


def test_packing_weights_is_fine_when_it_follows_their_change(tmp_path: Path) -> None:
    solution = """
class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.version = None
    def forward(self, x):
        version = (self.lin.weight._version, self.lin.weight.data_ptr())
        if version != self.version:
            self.packed, self.version = self.lin.weight.t().contiguous(), version
        return (x @ self.packed + self.lin.bias).clamp(min=0)
"""
    assert judged(tmp_path, LINEAR, solution, trials=3).passed


def test_printing_much_and_workspace_buffers_and_local_modules_are_fine(tmp_path: Path) -> None:
    tmp_path.joinpath("helper_of_mine.py").write_text("def twice(x):\n    return 2 * x\n")
    solution = """
from helper_of_mine import twice
class ModelNew(nn.Module):
    work = None
    def forward(self, a, b):
        print("x" * 200_000)
        self.work = twice(b) if self.work is None else torch.mul(b, 2, out=self.work)
        return a + self.work
"""
    done = judged(tmp_path, ADD, solution)
    assert done.passed, done.reasons
    assert "bytes left out" in done.output and len(done.output) < 200_000


@pytest.mark.parametrize("thrift", [Thrift.DEVICE, Thrift.HOST])
def test_short_of_memory_the_judge_does_without_copies(thrift: Thrift, tmp_path: Path) -> None:
    from judging import workspace

    from utils.judge.verify import Request, verify

    solution = "class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + 2 * b\n"
    folder = workspace(tmp_path, ADD, solution)
    done = verify(Request(workspace=str(folder), device="cpu", rules="relaxed", trials=2, seed=3), thrift=thrift)
    assert done.passed, done.reasons
    assert any(finding.kind == "memory" for finding in done.findings.of("note"))
    workspace(tmp_path, ADD, solution.replace("2 * b", "3 * b"))
    assert not verify(
        Request(workspace=str(folder), device="cpu", rules="relaxed", trials=1, seed=3), thrift=thrift
    ).passed
