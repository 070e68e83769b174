"""`python -m utils.new`: what it writes, that it is within the rules, and that it compiles."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from utils import new
from utils.present.outcome import CannotTell
from utils.problem.checks.solution_file import solution_findings
from utils.problem.checks.solution_state import _compared
from utils.problem.describe import describe
from utils.problem.problem import load_problem
from utils.problem.skeleton import binding_text, cuda_text, identifier, model_text, plan
from utils.problem.solution import find_solution
from utils.problem.workspace import ROOT, find_workspace
from utils.rules import static_violations

LIKE = sorted((Path(__file__).parent / "files" / "kernelbench_like").glob("*.py"))


def generate(path: Path, folder: Path, name: str = "fast_op") -> Path:
    """The files of utils.new, made in this process."""
    made = plan(name, describe(path), path.read_text())
    (folder / "kernels").mkdir()
    shutil.copy(path, folder / "model.py")
    (folder / "model_new.py").write_text(model_text(made))
    (folder / "kernels" / f"{name}.cu").write_text(cuda_text(made))
    (folder / "kernels" / f"{name}_binding.cpp").write_text(binding_text(made))
    return folder


@pytest.mark.parametrize("path", LIKE, ids=lambda p: p.stem)
def test_every_kind_of_problem_gets_a_fitting_solution(path, tmp_path):
    folder = generate(path, tmp_path)
    solution = find_solution(find_workspace(folder))
    assert solution.kind == "extension"
    assert static_violations(solution) == []
    states = {f.check: (f.status, f.sentence) for f in solution_findings(solution, folder / "model.py")}
    assert {status for status, _ in states.values()} == {"pass"}, states
    # The constructor keeps the state_dict: run with a stand-in for the module that is not built yet.
    source = (folder / "model_new.py").read_text().replace("import cuda_extension", "cuda_extension = None")
    scope: dict = {"__name__": "generated"}
    exec(compile(source, "model_new.py", "exec"), scope)
    problem = load_problem(path)
    assert _compared(problem.model(), scope["ModelNew"](*problem.init_inputs())).status == "pass"
    for line in source.splitlines():
        assert "get_inputs" not in line


def test_shapes_follow_the_inputs_where_they_do(tmp_path):
    text = (
        generate(next(p for p in LIKE if p.stem == "no_init_inputs"), tmp_path) / "kernels" / "fast_op_binding.cpp"
    ).read_text()
    assert "B.size(1)" in text and "x.options()" not in text
    assert 'check(B, "B", torch::kFloat32, 2, A);' in text


def test_the_skeleton_is_wrong_on_purpose(tmp_path):
    text = (
        generate(next(p for p in LIKE if p.stem == "conv3d_odd_kernel"), tmp_path) / "kernels" / "fast_op.cu"
    ).read_text()
    assert 'nanf("")' in text and "skeleton" in text


def test_results_keep_their_structure(tmp_path):
    source = (generate(next(p for p in LIKE if p.stem == "dict_output"), tmp_path) / "model_new.py").read_text()
    assert "return {'y': out[0], 'norm': out[1], 'count': 3, 'aux': None}" in source
    ast.parse(source)


def test_names():
    assert identifier("19_ReLU map") == "k_19_ReLU_map"
    assert identifier("double") == "double_"
    assert identifier("scores") == "scores"


def test_the_command(tmp_path, capsys):
    problem = next(p for p in LIKE if p.stem == "mlp_list_of_sizes")
    target = tmp_path / "fresh"
    assert new.main([str(target), "--problem", str(problem)]) == 0
    assert sorted(str(p.relative_to(target)) for p in target.rglob("*") if p.is_file()) == [
        "kernels/mlp_list_of_sizes.cu", "kernels/mlp_list_of_sizes_binding.cpp", "model.py", "model_new.py",
    ]  # fmt: skip
    assert (target / "model.py").read_text() == problem.read_text()
    assert "utils/compile.sh" in capsys.readouterr().out
    with pytest.raises(CannotTell, match="not empty"):
        new.main([str(target), "--problem", str(problem)])
    with pytest.raises(CannotTell, match="try k_9lives"):
        new.main([str(tmp_path / "other"), "--problem", str(problem), "--name", "9lives"])
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_a_fresh_workspace_compiles_at_once(tmp_path):
    if shutil.which("nvcc") is None and not Path("/usr/local/cuda/bin/nvcc").is_file():
        pytest.skip("no nvcc")
    folder = generate(next(p for p in LIKE if p.stem == "lstm_state_in_and_out"), tmp_path)
    command = ["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=None, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert list(folder.glob("cuda_extension*.so"))
    assert static_violations(find_solution(find_workspace(folder))) == [], "its built module breaks no rule either"
