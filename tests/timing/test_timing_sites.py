"""Finding the choices of a solution, rewriting them, and the grid on the command line."""

import ast

import pytest

from utils.present.outcome import CannotTell
from utils.problem.solution import find_solution
from utils.problem.workspace import Workspace
from utils.timing.sites import TABLE, find_sites, rewritten, signatures
from utils.tuning import parse_grid

BINDING = r"""
#include "../binding_registry.h"
torch::Tensor norm(const torch::Tensor& x, double eps, int64_t config);
void register_norm(pybind11::module& m) {
    m.def("norm", &norm, pybind11::arg("x"), pybind11::arg("eps") = 1e-5, pybind11::arg("config") = 2,
          R"doc(Norm (rows). See m.def("decoy", f, py::arg("config")) for more ")")doc");
    m.def("scale", &scale, "doc", py::arg("x"), py::arg("factor"));
}
REGISTER_BINDING(norm, register_norm);
"""

SOLUTION = '''"""Docstring."""
from __future__ import annotations

import torch.nn as nn

import cuda_extension
from cuda_extension import norm


class ModelNew(nn.Module):
    def forward(self, x, é):
        a = cuda_extension.norm(x)
        b = cuda_extension.norm(a, 1e-6, 1)
        c = norm(b, config=3); d = norm(é, config=self.which)
        e = cuda_extension.norm(
            d,
            eps=1e-6,
        )
        return cuda_extension.scale(e, 2.0)
'''


@pytest.fixture
def solution(tmp_path):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "norm_binding.cpp").write_text(BINDING)
    (tmp_path / "model_new.py").write_text(SOLUTION, encoding="utf-8")
    return find_solution(Workspace(tmp_path))


def test_signatures_are_read_from_the_registrations(solution):
    assert signatures(solution.workspace.kernels) == {
        "norm": [("x", None), ("eps", "1e-5"), ("config", "2")],
        "scale": [("x", None), ("factor", None)],
    }


def test_every_way_to_pass_a_config_is_found(solution):
    sites = find_sites(solution)
    assert [(site.key, site.value) for site in sites] == [
        ("norm:12", 2), ("norm:13", 1), ("norm:14", 3), ("norm:14#2", None), ("norm:15", 2),
    ]  # fmt: skip


def test_the_rewritten_file_looks_every_choice_up(solution):
    sites = find_sites(solution)
    text = rewritten(SOLUTION, sites, {site.key: 0 for site in sites})
    tree = ast.parse(text)
    looked_up = [
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == TABLE
    ]
    assert sorted(looked_up) == sorted(site.key for site in sites)
    calls = [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert f"cuda_extension.norm(x, config={TABLE}['norm:12'])" in calls
    assert f"cuda_extension.norm(a, 1e-06, {TABLE}['norm:13'])" in calls
    assert f"norm(é, config={TABLE}['norm:14#2'])" in calls
    assert f"cuda_extension.norm(d, eps=1e-06, config={TABLE}['norm:15'])" in calls
    assert "cuda_extension.scale(e, 2.0)" in calls


def test_the_call_to_put_in(solution):
    written = [site.with_value(5) for site in find_sites(solution)]
    assert written == [
        "cuda_extension.norm(x, config=5)",
        "cuda_extension.norm(a, 1e-06, 5)",
        "norm(b, config=5)",
        "norm(é, config=5)",
        "cuda_extension.norm(d, eps=1e-06, config=5)",
    ]


def test_a_call_with_a_config_literal_needs_no_binding(tmp_path):
    path = tmp_path / "solution.py"
    path.write_text("import triton\n\n\ndef f(x):\n    return kernel(x, config=1) + other(x, config=None)\n")
    assert [(site.key, site.value) for site in find_sites(find_solution(None, path))] == [
        ("kernel:5", 1),
        ("other:5", None),
    ]


def test_grids_name_a_function_or_one_call(solution):
    sites = find_sites(solution)
    assert parse_grid(["norm:13=4,5,4"], sites) == {"norm:13": [4, 5]}
    assert parse_grid(["norm=0,1"], sites) == {site.key: [0, 1] for site in sites}
    assert parse_grid(["norm=0,1", "norm:12=7"], sites)["norm:12"] == [7]


@pytest.mark.parametrize(
    "text, said",
    [
        ("gelu=1", "no call of 'gelu'"),
        ("norm", "give integers"),
        ("norm=", "give integers"),
        ("norm=a", "give integers"),
    ],
)
def test_a_wrong_grid_is_said_in_one_sentence(solution, text, said):
    with pytest.raises(CannotTell, match=said):
        parse_grid([text], find_sites(solution))
