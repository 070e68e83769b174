"""Problem and solution files loaded by the one loader: forms accepted, sentences for the rest, layouts told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from utils.present.outcome import CannotTell
from utils.problem import loader
from utils.problem.loader import inline_build_folder, load_model_new
from utils.problem.problem import load_problem, settle_init_inputs, settle_inputs
from utils.problem.solution import find_solution, kind_of
from utils.problem.workspace import ROOT, find_workspace

MODEL = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return self.lin(x)


def get_inputs():
    return [torch.randn(5, 3)]
"""
SMALL = """

def get_small_inputs():
    return [torch.randn(2, 4)]


def get_small_init_inputs():
    return [4]
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_problem_and_its_small_variant(tmp_path):
    problem = load_problem(
        write(
            tmp_path,
            "model.py",
            MODEL + SMALL,
        )
    )
    assert problem.inputs()[0].shape == (5, 3)
    assert problem.init_inputs() == []
    assert problem.has_small
    small = problem.model(small=True)
    assert small(*problem.inputs(small=True)).shape == (2, 4)
    assert problem.Model.__name__ == "Model"
    assert not list(tmp_path.glob("__pycache__"))


def test_two_files_of_one_name_are_two_problems(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir(), second.mkdir()
    one = load_problem(write(first, "model.py", MODEL))
    two = load_problem(write(second, "model.py", MODEL.replace("5, 3", "6, 3")))
    assert (one.inputs()[0].shape[0], two.inputs()[0].shape[0]) == (5, 6)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1\n", "no class named Model"),
        (MODEL.replace("nn.Module", "object"), "not a subclass of torch.nn.Module"),
        (MODEL.split("def get_inputs")[0], "no function get_inputs"),
        ("import nothing_of_that_name\n", r"model.py does not run: ModuleNotFoundError.*\(model.py:1\)"),
        ("raise SystemExit(0)\n", "ends the interpreter"),
        ("def f(:\n", r"SyntaxError.*\(model.py:1\)"),
        (MODEL + "\nget_init_inputs = 3\n", "get_init_inputs in model.py is not a function"),
    ],
)
def test_sentences_of_files_that_are_none(tmp_path, text, sentence):
    with pytest.raises(CannotTell, match=sentence):
        load_problem(write(tmp_path, "model.py", text))


def test_forms_of_returned_arguments():
    x = torch.zeros(2)
    assert settle_inputs([x, 2.0, None]) == ([x, 2.0, None], None)
    assert settle_inputs((x, 1))[0] == [x, 1]
    assert settle_inputs(x)[0][0] is x
    assert settle_inputs([[x, x], {"a": x}])[1] is None
    for wrong in ({"x": x}, None, (t for t in [x]), 3, "x"):
        with pytest.raises(CannotTell, match="must return a list of forward's positional arguments, got"):
            settle_inputs(wrong)
    assert settle_init_inputs(None)[0] == []
    assert settle_init_inputs(64)[0] == [64]
    assert settle_init_inputs("gelu")[0] == ["gelu"]
    assert settle_init_inputs([[1, 2], (3, 5)]) == ([[1, 2], (3, 5)], None)
    with pytest.raises(CannotTell, match="got dict"):
        settle_init_inputs({"n": 3})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import cuda_extension\n", "extension"),
        ("from cuda_extension import op\n", "extension"),
        ("def f():\n    import cuda_extension as e\n", "extension"),
        ("from torch.utils.cpp_extension import load_inline\n", "load_inline"),
        ("import torch.utils.cpp_extension as builder\n", "load_inline"),
        ("from torch.utils import cpp_extension\n", "load_inline"),
        ("import triton\nimport triton.language as tl\n", "triton"),
        ("# import triton, cuda_extension\nimport torch\n", "python"),
    ],
)
def test_layouts_are_told_apart_by_what_is_imported(tmp_path, text, kind):
    assert kind_of(write(tmp_path, "solution.py", text)) == kind


def test_the_examples_of_each_layout():
    kinds = {}
    for name in ("layout_extension", "layout_load_inline", "layout_triton"):
        kinds[name] = find_solution(find_workspace(ROOT / "examples" / name)).kind
    assert kinds == {"layout_extension": "extension", "layout_load_inline": "load_inline", "layout_triton": "triton"}


def test_finding_a_solution(tmp_path):
    with pytest.raises(CannotTell, match="there is no solution"):
        find_solution(find_workspace(tmp_path))
    write(tmp_path, "solution.py", "import triton\n")
    assert find_solution(find_workspace(tmp_path)).path.name == "solution.py"
    write(tmp_path, "model_new.py", "import cuda_extension\n")
    found = find_solution(find_workspace(tmp_path))
    assert (found.path.name, found.kind, found.workspace.root) == ("model_new.py", "extension", tmp_path.resolve())
    with pytest.raises(CannotTell, match=r"solution.py:1: not valid Python"):
        find_solution(None, write(tmp_path, "solution.py", "def (\n"))


def test_an_extension_that_is_not_built(tmp_path):
    write(
        tmp_path,
        "model_new.py",
        "import cuda_extension\nfrom torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n",
    )
    with pytest.raises(CannotTell, match=r"is not built.*compile\.sh"):
        load_model_new(find_solution(find_workspace(tmp_path)))


def test_a_file_that_is_no_module_does_not_load(tmp_path):
    write(tmp_path, "model_new.py", "import cuda_extension\n")
    solution = find_solution(find_workspace(tmp_path))
    loader.module_path(solution.workspace).write_bytes(b"not a module")
    with pytest.raises(CannotTell, match="does not load"):
        load_model_new(solution)


def test_a_torch_py_beside_a_solution_does_not_become_torch(tmp_path):
    write(tmp_path, "torch.py", "raise RuntimeError('shadowed')\n")
    write(tmp_path, "helper.py", "VALUE = 7\n")
    path = write(
        tmp_path,
        "solution.py",
        "import torch\nfrom torch import nn\nimport helper\n\n\nclass ModelNew(nn.Module):\n    value = helper.VALUE\n",
    )
    try:
        assert load_model_new(find_solution(None, path)).value == 7
    finally:
        sys.modules.pop("helper", None)
        sys.path.remove(str(tmp_path))


def test_build_folders_of_inline_solutions(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one = find_solution(None, write(tmp_path, "one.py", "from torch.utils.cpp_extension import load_inline\n"))
    two = find_solution(None, write(tmp_path, "two.py", "from torch.utils.cpp_extension import load_inline  # else\n"))
    first = inline_build_folder(one)
    assert first == inline_build_folder(one)
    assert first != inline_build_folder(two)
    one.path.write_text(one.path.read_text() + "# edited\n")
    assert inline_build_folder(one) != first
    assert first.parent == tmp_path / "cache" / "kernel-workbench" / "inline"


INLINE = """import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = "#include <torch/types.h>\\nint answer() {{ return {0}; }}"
module = load_inline(name="same", cpp_sources=source, functions=["answer"])


class ModelNew(nn.Module):
    def forward(self):
        return module.answer()
"""


@pytest.mark.slow
def test_two_inline_solutions_of_one_name_and_an_edited_one(tmp_path, monkeypatch):
    """One name, three sources: each answers with its own build, and an unchanged one is not built again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text(INLINE.format(1))
    two.write_text(INLINE.format(2))
    assert load_model_new(find_solution(None, one))()() == 1
    assert load_model_new(find_solution(None, two))()() == 2
    built = sorted((tmp_path / "cache").rglob("*.so"))
    assert len(built) == 2
    before = [path.stat().st_mtime_ns for path in built]
    # A lock left by a process that died must not be waited for.
    (built[0].parent / "lock").touch()
    (built[1].parent / "lock").touch()
    assert load_model_new(find_solution(None, one))()() == 1
    assert [path.stat().st_mtime_ns for path in built] == before
