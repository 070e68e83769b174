"""Cases C, the checker's logic: C34 to C46 of the public collection, each as its users met it."""

from __future__ import annotations

from pathlib import Path

import pytest
from case_judging import judged, told, write

from utils.judge.verify import Request, verify
from utils.present.outcome import CannotTell

AXPBY = """
class Model(nn.Module):
    def forward(self, a, b):
        return 2 * a + 3 * b
def get_inputs():
    return [torch.randn(16, 32), torch.randn(16, 32)]
"""


def new(body: str, arguments: str = "x") -> str:
    return f"class ModelNew(nn.Module):\n    def forward(self, {arguments}):\n        {body}\n"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_c34_uninitialised_memory_never_passes(seed: int, tmp_path: Path) -> None:
    done = judged(tmp_path, AXPBY, new("return torch.empty_like(a)", "a, b"), seed=seed)
    assert not done.passed and "elements differ" in told(done)


def test_c35_inputs_changed_by_the_solution_are_named(tmp_path: Path) -> None:
    done = judged(tmp_path, AXPBY, new("return a.mul_(2).add_(3 * b).clone()", "a, b"))
    assert not done.passed and "ModelNew changed input 0; Model leaves it as it was" in told(done)


IN_PLACE = """
class Model(nn.Module):
    def forward(self, a):
        a.add_(1)
        return a * 2
def get_inputs():
    return [torch.randn(16)]
"""


def test_c35_a_model_that_changes_its_input_is_judged_on_copies(tmp_path: Path) -> None:
    assert judged(tmp_path / "same", IN_PLACE, trials=2).passed
    done = judged(tmp_path / "pure", IN_PLACE, new("return (a + 1) * 2", "a"))
    assert done.passed, done.reasons
    assert "Model changes input 0 in place and ModelNew does not" in told(done, "warn")


def test_c37_weights_of_another_order_and_initialiser_are_copied(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            self.scale = nn.Parameter(torch.ones(4))
        def forward(self, x):
            return self.b(torch.relu(self.a(x))) * self.scale
    def get_inputs():
        return [torch.randn(6, 4)]
    """
    solution = """
    class ModelNew(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.randn(4))
            self.b, self.a = nn.Linear(4, 4), nn.Linear(4, 4)
        def forward(self, x):
            return self.b(torch.relu(self.a(x))) * self.scale
    """
    assert judged(tmp_path / "order", problem, solution, trials=2).passed
    renamed = (
        solution.replace("self.b", "self.second")
        .replace("torch.randn(4)", "torch.randn(5)")
        .replace("* self.scale", "* self.scale[:4]")
    )
    done = judged(tmp_path / "names", problem, renamed)
    assert not done.passed
    for words in (
        "ModelNew has no b.weight, b.bias",
        "Model has no second.weight, second.bias that ModelNew wants",
        "scale has shape [5], in Model [4]",
    ):
        assert words in told(done), told(done)


def test_c39_zeros_do_not_pass_for_small_outputs(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.softmax(x, dim=1)
    def get_inputs():
        return [torch.randn(64, 8192)]
    """
    done = judged(tmp_path, problem, new("return torch.zeros_like(x)"))
    assert not done.passed and "a trivial answer would pass" in told(done, "warn")
    assert judged(tmp_path / "right", problem, new("e = torch.exp(x); return e / e.sum(1, keepdim=True)")).passed


def test_c39_an_output_that_ignores_its_input_is_said_to_tell_nothing(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def forward(self, x):
            return x - x.mean(1, keepdim=True)
    def get_inputs():
        return [torch.randn(64, 1)]
    """
    done = judged(tmp_path, problem)
    assert done.passed and "passing says nothing about this output" in told(done, "warn")


def test_c40_another_order_of_summation_in_bf16_passes_every_time(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def forward(self, a, b):
            return a @ b
    def get_inputs():
        return [torch.randn(64, 1024).bfloat16(), torch.randn(1024, 64).bfloat16()]
    """
    solution = """
    class ModelNew(nn.Module):
        def forward(self, a, b):
            total = torch.zeros(64, 64)
            for k in range(0, 1024, 128):
                total += a[:, k : k + 128].float() @ b[k : k + 128].float()
            return total.bfloat16()
    """
    done = judged(tmp_path, problem, solution, trials=34)  # three calls each: a hundred
    assert done.passed, done.reasons


def test_c41_nan_and_infinity_are_compared_in_place_and_sign(tmp_path: Path) -> None:
    problem = """
    class Model(nn.Module):
        def forward(self, x):
            return torch.log(x), torch.softmax(torch.where(x > 1, x, -torch.inf), 1), -1 / torch.relu(x), float("nan")
    def get_inputs():
        return [torch.randn(50, 3)]
    """
    assert judged(tmp_path / "same", problem).passed
    fast = """
    class ModelNew(nn.Module):
        def forward(self, x):
            masked = torch.softmax(torch.where(x > 1, x, -torch.inf), 1)
            return torch.log(x).nan_to_num(0.0), masked, 1 / torch.relu(x), 0.0
    """
    done = judged(tmp_path / "fast", problem, fast)
    assert not done.passed
    for words in ("NaN or Inf on one side only", "out[2]", "out[3] is 0.0, the reference returns nan"):
        assert words in told(done), told(done)


CONTAINERS = """
class Model(nn.Module):
    def forward(self, xs, scale=2.0, mask=None):
        y = xs[0] * scale + xs[1]
        return {"y": y, "aux": (y.sum(), 3, None)}
def get_inputs():
    return [[torch.randn(4, 5), torch.randn(4, 5)], 1.5, None]
"""


def test_c43_lists_numbers_and_none_travel_both_ways(tmp_path: Path) -> None:
    done = judged(tmp_path, CONTAINERS)
    assert done.passed, done.reasons


@pytest.mark.parametrize(
    "result, words",
    [
        ('{"y": y, "aux": [y.sum(), 3, None]}', "out['aux'] is a list, the reference returns a tuple"),
        ('{"y": y, "aux": (y.sum(), 3, None), "z": y}', "out has the key 'z'"),
        ('{"y": y, "aux": (float(y.sum()), 3, None)}', "out['aux'][0] is"),
        ('{"y": y, "aux": (y.sum(), 4, None)}', "out['aux'][1] is 4, the reference returns 3"),
        ('{"y": y, "aux": (y.sum(), 3, 0)}', "out['aux'][2] is"),
    ],
)
def test_c43_a_structure_that_differs_is_told_with_its_path(result: str, words: str, tmp_path: Path) -> None:
    done = judged(tmp_path, CONTAINERS, new(f"y = xs[0] * scale + xs[1]; return {result}", "xs, scale=2.0, mask=None"))
    assert not done.passed and words in told(done), told(done)


@pytest.mark.parametrize("given", ["None", "3"])
def test_c43_what_get_inputs_must_give_is_said(given: str, tmp_path: Path) -> None:
    problem = new("return x * 2").replace("ModelNew", "Model") + f"def get_inputs():\n    return {given}\n"
    folder = write(tmp_path, problem)
    with pytest.raises(CannotTell, match="get_inputs"):
        verify(Request(workspace=str(folder), device="cpu", rules="relaxed", trials=1))


def test_c43_a_single_tensor_is_one_input(tmp_path: Path) -> None:
    problem = new("return x * 2").replace("ModelNew", "Model") + "def get_inputs():\n    return torch.randn(4)\n"
    done = judged(tmp_path, problem)
    assert done.passed, done.reasons


def test_c44_running_out_of_memory_is_the_solutions_own_failure(tmp_path: Path) -> None:
    done = judged(tmp_path, AXPBY, new("return (a + b + torch.ones(1 << 62, dtype=torch.uint8)[0])", "a, b"))
    assert not done.passed and "forward" in told(done) and "Model.forward" not in told(done)


def test_c45_a_replaced_clock_is_refused(tmp_path: Path) -> None:
    patching = "torch.cuda.Event.elapsed_time = lambda self, other: 0.001\n" + new("return 2 * a + 3 * b", "a, b")
    done = judged(tmp_path, AXPBY, patching)
    assert not done.passed and "replaces torch.cuda.Event.elapsed_time" in told(done)


def test_c46_flags_of_both_files_are_told_and_change_nothing(tmp_path: Path) -> None:
    problem = "torch.backends.cudnn.benchmark = True\n" + AXPBY
    solution = "torch.set_default_dtype(torch.float64)\ntorch.set_grad_enabled(False)\n" + new(
        "return 2 * a + 3 * b", "a, b"
    )
    done = judged(tmp_path, problem, solution)
    assert done.passed, done.reasons
    notes = told(done, "note")
    assert "model.py sets torch.backends.cudnn.benchmark when it is imported; it was put back" in notes
    assert "importing the solution sets default dtype to torch.float64 (in its own process only)" in notes
