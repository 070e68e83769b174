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
# What bindings share needs torch's headers; nothing that a kernel includes does.
BINDING_HEADERS = [header for header in HEADERS if header.name == "tensor_checks.h" or header.stem.endswith("_binding")]
HOST_HEADERS = [header for header in HEADERS if header.suffix == ".h" and header not in BINDING_HEADERS]
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
def test_only_what_bindings_share_knows_torch(header):
    text = header.read_text()
    torch_headers = [line for line in text.splitlines() if line.startswith(("#include <torch/", "#include <c10/"))]
    assert bool(torch_headers) == (header in BINDING_HEADERS)
    assert text.count("#pragma once") == 1


@pytest.mark.slow
@needs_nvcc
@pytest.mark.parametrize("header", DEVICE_HEADERS + HOST_HEADERS, ids=lambda header: header.name)
def test_a_header_compiles_alone(header, tmp_path):
    source = tmp_path / "alone.cu"
    source.write_text(f'#include "common/{header.name}"\n#include "common/{header.name}"\nint main() {{ return 0; }}\n')
    result = run(NVCC, *NVCC_FLAGS, "-arch=sm_90a", "-c", str(source), "-o", str(tmp_path / "alone.o"))
    assert result.returncode == 0, result.stderr


# The two functions of CUDA that check.h calls are replaced, so neither a GPU nor the runtime is needed.
ERRORS = r"""
#include "common/check.h"
extern "C" const char* cudaGetErrorName(cudaError_t) { return "cudaErrorInvalidValue"; }
extern "C" const char* cudaGetErrorString(cudaError_t) { return "invalid argument"; }
template <typename F> void show(F&& f) {
    try { f(); } catch (const std::exception& error) { std::puts(error.what()); }
}
int main() {
    show([] { CUDA_CHECK(cudaSuccess); });
    show([] { CUDA_CHECK(cudaErrorInvalidValue); });
    show([] { kernels::throw_api_error("CUDA", std::string(5000, 'e').c_str(), "NAME", "meaning", "file.cu", 7); });
    show([] { kernels::throw_error("config must be 0 to %d, got %ld: %s", 3, -1L, "no"); });
    show([] { kernels::throw_error("%s", std::string(5000, 'x').c_str()); });
}
"""


@needs_nvcc
def test_errors_are_sentences_with_their_place(tmp_path):
    source = tmp_path / "errors.cpp"
    source.write_text("#include <string>\n" + ERRORS)
    include = Path(NVCC).resolve().parents[1] / "include"
    flags = ["-std=c++17", "-Wall", "-Werror", f"-I{ROOT / 'kernels'}", "-isystem", str(include)]
    result = run("g++", *flags, str(source), "-o", str(tmp_path / "errors"))
    assert result.returncode == 0, result.stderr
    invalid, long_call, own, cut = run(str(tmp_path / "errors")).stdout.splitlines()
    line = source.read_text().splitlines().index("    show([] { CUDA_CHECK(cudaErrorInvalidValue); });") + 1
    assert invalid == (
        f"CUDA error cudaErrorInvalidValue (invalid argument) from cudaErrorInvalidValue at {source}:{line}"
    )
    assert long_call.endswith("eee at file.cu:7")
    assert own == "config must be 0 to 3, got -1: no"
    assert cut == "x" * 1023


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
