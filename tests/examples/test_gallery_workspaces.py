"""Every workspace of the gallery is whole, its problem means something, and its kernels are right on awkward shapes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from gallery_cases import CASES

from utils.problem.problem import load_problem

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(CASES)

gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("name", NAMES)
def test_kernels_come_in_pairs(name: str) -> None:
    kernels = EXAMPLES / name / "kernels"
    sources = {path.stem for path in kernels.glob("*.cu")}
    bindings = {path.stem.removesuffix("_binding") for path in kernels.glob("*_binding.cpp")}
    assert sources and sources == bindings


@pytest.mark.parametrize("name", NAMES)
def test_header_of_the_kernel_explains_itself(name: str) -> None:
    """What bounds it, the algorithm, and every config that the binding offers."""
    for source in (EXAMPLES / name / "kernels").glob("*.cu"):
        header = source.read_text().split("#include", 1)[0]
        assert "What bounds it" in header, source
        binding = source.with_name(source.stem + "_binding.cpp").read_text()
        for shared in re.findall(r'#include "(common/\w+_binding\.h)"', binding):
            binding += (ROOT / "kernels" / shared).read_text()
        offered = set(re.findall(r"^ {4}(\d+)  \S", binding, flags=re.MULTILINE))
        explained = set(re.findall(r"config (\d+)", header))
        assert offered == explained, source


@pytest.mark.parametrize("name", NAMES)
def test_problem_runs_small_and_its_answer_depends_on_its_inputs(name: str) -> None:
    problem = load_problem(EXAMPLES / name / "model.py")
    assert problem.has_small
    torch.manual_seed(0)
    model = problem.model(small=True).eval()
    with torch.no_grad():
        one, other = model(*problem.inputs(small=True)), model(*problem.inputs(small=True))
    assert one.isfinite().all()
    close = torch.isclose(other, one, rtol=1e-2, atol=1e-2 * float(one.square().mean().sqrt()))
    # Softmax rows and triangles hold many values that are (nearly) zero in every answer.
    assert float(close.float().mean()) < 0.97


def test_full_shapes_are_those_of_the_problem_table() -> None:
    """The sizes in the model files, as meta tensors: nothing is allocated."""
    expected = {
        "softmax_rows": [(4096, 393216)],
        "layer_norm": [(16, 64, 256, 256)],
        "group_norm": [(112, 64, 512, 512)],
        "cumsum_rows": [(32768, 32768)],
        "max_pool_2d": [(32, 64, 512, 512)],
        "cross_entropy": [(32768, 4096), (32768,)],
        "matmul_square": [(4096, 4096), (4096, 4096)],
        "matmul_rect": [(2048, 8192), (8192, 4096)],
        "matmul_triangular": [(4096, 4096), (4096, 4096)],
        "gemm_act_scale": [(1024, 8192)],
        "attention_causal": [(16, 16, 2048, 64)] * 3,
        "transformer_block": [(8, 1024, 768)],
        "conv_bias_act_pool": [(128, 8, 256, 256)],
    }
    assert sorted(expected) == NAMES
    for name, shapes in expected.items():
        with torch.device("meta"):
            inputs = load_problem(EXAMPLES / name / "model.py").get_inputs()
        assert [tuple(value.shape) for value in inputs] == shapes, name


def load_solution(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """model_new.py with a stand-in for the built module: enough to construct ModelNew."""
    monkeypatch.setitem(sys.modules, "cuda_extension", ModuleType("cuda_extension"))
    spec = importlib.util.spec_from_file_location(f"solution_{name}", EXAMPLES / name / "model_new.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_solution_takes_the_weights_of_the_problem(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = load_problem(EXAMPLES / name / "model.py")
    new = load_solution(name, monkeypatch).ModelNew(*problem.init_inputs(small=True))
    state = problem.model(small=True).state_dict()
    new.load_state_dict(state, strict=True)
    for key, value in new.state_dict().items():
        assert torch.equal(value, state[key]), key


def run_cases(name: str, folder: Path, device: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(Path(__file__).with_name("gallery_cases.py")), name, str(folder), device]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(results) >= len(CASES[name]) + 1
    wrong = [result for result in results if not result["same_shape"] or result["failing"]]
    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_right_on_the_simulator(name: str) -> None:
    build = pytest.importorskip("utils.sim.build")
    from utils.present.outcome import CannotTell
    from utils.problem.workspace import Workspace

    try:
        module = build.build_simulated(Workspace(EXAMPLES / name))
    except CannotTell as reason:
        pytest.skip(f"not simulable: {reason}")
    run_cases(name, Path(module).parent, "cpu")


@gpu
@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_right_on_the_gpu(name: str) -> None:
    built = subprocess.run(
        ["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout[-3000:]
    run_cases(name, EXAMPLES / name, "cuda")
