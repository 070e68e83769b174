"""kernels/common: every header stands on its own, and the device code in it does what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from utils.problem.workspace import ROOT

COMMON = ROOT / "kernels" / "common"
HEADERS = sorted([*COMMON.glob("*.h"), *COMMON.glob("*.cuh")])
HOST_HEADERS = [header for header in HEADERS if header.suffix == ".h" and header.name != "tensor_checks.h"]
DEVICE_HEADERS = [header for header in HEADERS if header.suffix == ".cuh"]
NVCC_FLAGS = ["-std=c++17", "--expt-relaxed-constexpr", f"-I{ROOT / 'kernels'}"]


def find_nvcc() -> str | None:
    candidates = [shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"]
    if os.environ.get("CUDA_HOME"):
        candidates.insert(0, f"{os.environ['CUDA_HOME']}/bin/nvcc")
    return next((path for path in candidates if path and Path(path).is_file()), None)


NVCC = find_nvcc()
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc under CUDA_HOME, on PATH or in /usr/local/cuda")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_there_are_headers():
    assert {"check.h", "vector.cuh", "reduce.cuh", "cublaslt.h", "cudnn_conv.h", "tensor_checks.h"} <= {
        header.name for header in HEADERS
    }


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.name)
def test_only_the_binding_checks_know_torch(header):
    text = header.read_text()
    torch_headers = [line for line in text.splitlines() if line.startswith(("#include <torch/", "#include <c10/"))]
    assert bool(torch_headers) == (header.name == "tensor_checks.h")
    assert text.count("#pragma once") == 1


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("header", DEVICE_HEADERS + HOST_HEADERS, ids=lambda header: header.name)
def test_a_header_compiles_alone(header, tmp_path):
    source = tmp_path / "alone.cu"
    source.write_text(f'#include "common/{header.name}"\n#include "common/{header.name}"\nint main() {{ return 0; }}\n')
    result = run(NVCC, *NVCC_FLAGS, "-arch=sm_90a", "-c", str(source), "-o", str(tmp_path / "alone.o"))
    assert result.returncode == 0, result.stderr


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU in this machine")
@needs_nvcc
def test_device_code(tmp_path):
    program = tmp_path / "common_device"
    major, minor = torch.cuda.get_device_capability()
    source = Path(__file__).with_name("common_device.cu")
    result = run(NVCC, *NVCC_FLAGS, f"-arch=sm_{major}{minor}", "-O2", str(source), "-o", str(program))
    assert result.returncode == 0, result.stderr
    result = run(str(program))
    assert result.returncode == 0 and result.stdout.endswith("ok\n"), result.stdout + result.stderr
