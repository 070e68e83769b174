"""cudnn_conv.h against the real cuDNN, planning for an H200 on a machine that need not have a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from utils.problem.workspace import ROOT

WHEELS = Path(torch.__file__).parents[1] / "nvidia"
CUDNN = WHEELS / "cudnn"
CUDA_INCLUDES = [
    folder
    for folder in [*WHEELS.glob("cu*/include"), Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    if (folder / "cuda_runtime_api.h").is_file()
]


@pytest.fixture(scope="module")
def plans(tmp_path_factory) -> tuple[dict[str, dict], str]:
    """What the program printed: a record per problem, and its error output."""
    if not list(CUDNN.glob("lib/libcudnn.so*")) or not CUDA_INCLUDES or not shutil.which("g++"):
        pytest.skip("needs cuDNN's wheel, CUDA's headers and g++")
    program = tmp_path_factory.mktemp("cudnn_plans") / "cudnn_plans"
    includes = [f"-I{folder}" for folder in [ROOT / "kernels", CUDNN / "include", *CUDA_INCLUDES[:1]]]
    source = str(Path(__file__).with_name("cudnn_plans.cpp"))
    library = next(iter(sorted(CUDNN.glob("lib/libcudnn.so*"))))
    command = ["g++", "-std=c++17", "-w", *includes, source, str(library), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{CUDNN / 'lib'}:{WHEELS / 'cu13' / 'lib'}"}
    result = subprocess.run([str(program)], capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in result.stdout.splitlines()]
    return {record["name"]: record for record in records}, result.stderr


def test_every_problem_has_engines(plans):
    """Large, small, odd and single-element shapes, TF32 and strict fp32: the bias is fused by some engine for each."""
    records, errors = plans
    assert len(records) == 9, errors
    for name, record in records.items():
        assert record["candidates"] >= 1, name
        assert record["ran"], name


def test_the_search_is_bounded_and_keeps_one_plan(plans):
    records, _ = plans
    assert records["patches"]["candidates"] == 24
    assert records["patches, first guess"]["candidates"] == 1
    for name, record in records.items():
        assert record["one_run_when_decided"], name
        assert 0 <= record["workspace_after"] <= record["workspace_before"] <= 128 * 2**20, name


def test_an_engine_that_refuses_to_run_is_passed_over(plans):
    records, _ = plans
    for name, record in records.items():
        assert record["candidates"] == 1 or record["chose_another_than_the_refusing"], name


def test_nothing_is_decided_while_a_graph_is_captured(plans):
    records, _ = plans
    assert all(record["kept_while_capturing"] for record in records.values())


def test_an_error_names_the_call_and_the_place(plans):
    _, errors = plans
    assert "cuDNN error CUDNN_STATUS_BAD_PARAM" in errors
    assert "(nullptr)" in errors
    assert "cudnn_plans.cpp:" in errors
