"""Building a workspace for the simulator and running it through torch, as the judge and `utils.sanitize` do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.build.gpus import visible_gpus
from utils.present.outcome import CannotTell, No
from utils.problem.workspace import ROOT, Workspace
from utils.sanitize import _kernel_list
from utils.sim.build import build_simulated

KERNEL = r"""
#include <cuda_runtime.h>

template <int BLOCK>
__global__ void scale_kernel(float* out, const float* in, int size, float factor) {
    extern __shared__ float staged[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size) staged[threadIdx.x] = in[i] * factor;
    __syncthreads();
    if (i < size OFF) out[i] = staged[threadIdx.x];
}

extern "C" void scale_launcher(float* out, const float* in, int size, float factor, int config, cudaStream_t stream) {
    switch (config) {
        case 0:
            scale_kernel<256><<<(size + 255) / 256, 256, 256 * sizeof(float), stream>>>(
                out, in, size, factor);
            break;
        default: scale_kernel<128><<<(size + 127) / 128, 128, 128 * sizeof(float), stream>>>(out, in, size, factor);
    }
}
"""
BINDING = r"""
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime.h>

#include "../binding_registry.h"

extern "C" void scale_launcher(float* out, const float* in, int size, float factor, int config, cudaStream_t stream);

torch::Tensor scale(torch::Tensor input, double factor, int config) {
    TORCH_CHECK(input.is_cuda(), "input must be a CUDA tensor");
    TORCH_CHECK(input.device().type() == torch::kCUDA, "input must be on the device");
    TORCH_CHECK(input.dtype() == torch::kFloat32, "input must be float32");
    const c10::cuda::OptionalCUDAGuard guard(input.device());
    auto out = torch::empty(input.sizes(), input.options().device(torch::kCUDA));
    scale_launcher(out.data_ptr<float>(), input.data_ptr<float>(), static_cast<int>(input.numel()),
                   static_cast<float>(factor), config, c10::cuda::getCurrentCUDAStream().stream());
    TORCH_CHECK(cudaGetLastError() == cudaSuccess, "the launch failed");
    return out;
}

void register_scale(pybind11::module& m) {
    m.def("scale", &scale, pybind11::arg("input"), pybind11::arg("factor"), pybind11::arg("config") = 0);
}
REGISTER_BINDING(scale, register_scale);
"""
MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 3.0

def get_inputs():
    return [torch.randn(100000)]

def get_small_inputs():
    return [torch.randn(1000)]

def get_init_inputs():
    return []
"""
MODEL_NEW = """
import torch
import cuda_extension

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return cuda_extension.scale(x, 3.0)
"""


def workspace(folder: Path, kernel: str = KERNEL, binding: str = BINDING, off: str = "") -> Workspace:
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels/scale.cu").write_text(kernel.replace(" OFF", off))
    (folder / "kernels/scale_binding.cpp").write_text(binding)
    (folder / "model.py").write_text(MODEL)
    (folder / "model_new.py").write_text(MODEL_NEW)
    return Workspace(folder)


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


def sanitize(place: Workspace, *words: str, device: str = "sim") -> tuple[int, dict[str, object], str]:
    record = place.root / "record.json"
    command = [sys.executable, "-m", "utils.sanitize", "--workspace", str(place.root), "--device", device]
    done = subprocess.run(
        [*command, "--json", str(record), *words], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    return done.returncode, json.loads(record.read_text()), done.stdout + done.stderr


@pytest.mark.slow
def test_the_module_is_built_marked_and_right(tmp_path: Path) -> None:
    place = workspace(tmp_path / "a folder with spaces")
    module = build_simulated(place)
    stamp = module.stat().st_mtime_ns
    assert build_simulated(place) == module and module.stat().st_mtime_ns == stamp
    code = """
import sys, importlib.util, torch
spec = importlib.util.spec_from_file_location("cuda_extension", sys.argv[1])
m = importlib.util.module_from_spec(spec); spec.loader.exec_module(m)
assert m.__simulated__ is True and m.__build__["simulated"] is True
x = torch.randn(12345)
assert torch.equal(m.scale(x, 2.0), x * 2) and torch.equal(m.scale(x, 2.0, config=1), x * 2)
try:
    m.scale(x.double(), 2.0)
except RuntimeError as error:
    assert "input must be float32" in str(error)
else:
    raise SystemExit("a double was accepted")
"""
    done = python(code, str(module))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_sanitize_reports_clean_and_planted_alike(tmp_path: Path) -> None:
    code, record, said = sanitize(workspace(tmp_path / "clean"), "--mode", "race")
    assert code == 0 and record["verdict"] == "CLEAN" and record["simulated"] is True, said
    assert "simulated on the CPU" in said
    code, record, said = sanitize(workspace(tmp_path / "planted", off=" + 24"), "--mode", "race")
    assert code == 1 and record["verdict"] == "FINDINGS", said
    found = record["results"]["findings"]  # type: ignore[index]
    kinds = {(each["kind"], Path(each["file"]).name, each["line"]) for each in found}
    line = next(n for n, text in enumerate(KERNEL.splitlines(), 1) if "OFF" in text)
    assert ("out_of_bounds", "scale.cu", line) in kinds, found


@pytest.mark.gpu
@pytest.mark.skipif(not visible_gpus(), reason="no NVIDIA GPU in this machine")
@pytest.mark.slow
def test_a_gpu_is_asked_for_the_same_in_the_same_form(tmp_path: Path) -> None:
    for name, off, verdict in (("clean", "", "CLEAN"), ("planted", " + 24", "FINDINGS")):
        place = workspace(tmp_path / name, off=off)
        built = subprocess.run(["bash", "utils/compile.sh", "--workspace", str(place.root)], cwd=ROOT)
        assert built.returncode == 0
        code, record, said = sanitize(place, device="gpu")
        assert record["verdict"] == verdict and record["simulated"] is False and code == (verdict != "CLEAN"), said
        results = record["results"]
        assert any("scale_kernel" in kernel for kernel in results["kernels"]), said  # type: ignore[index]
        tools = {"memcheck", "racecheck", "initcheck", "synccheck"}
        assert {f"compute-sanitizer/{tool}" for tool in tools} == set(results["ran"]), said  # type: ignore[index]
        kinds = {(each["kind"], Path(each["file"]).name) for each in results["findings"]}  # type: ignore[index]
        assert not off or ("out_of_bounds", "scale.cu") in kinds, said


@pytest.mark.slow
def test_a_run_that_reaches_no_kernel_is_no_clean_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine whose GPU is not there: the tools run to their end and see nothing."""
    tool = tmp_path / "compute-sanitizer"
    tool.write_text("#!/bin/sh\necho '========= ERROR SUMMARY: 0 errors'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    code, record, said = sanitize(workspace(tmp_path / "place"), device="gpu")
    assert code == 2 and record["verdict"] == "INCOMPLETE", said
    assert record["results"]["kernels"] == []  # type: ignore[index]
    assert "without a tool" in said


@pytest.mark.slow
def test_what_the_source_gets_wrong_is_told_in_its_own_place(tmp_path: Path) -> None:
    with pytest.raises(No, match=r"scale\.cu:9:.*error"):
        build_simulated(workspace(tmp_path / "broken", kernel=KERNEL.replace("__syncthreads();", "__syncthread();")))
    with pytest.raises(CannotTell, match="cudaGraphLaunch"):
        call = "cudaGraphLaunch(nullptr, stream);\n    switch (config)"
        build_simulated(workspace(tmp_path / "graph", kernel=KERNEL.replace("switch (config)", call)))
    with pytest.raises(No, match=r"scale_launcher.* is declared but defined in no file"):
        build_simulated(workspace(tmp_path / "lost", kernel="// nothing\n"))


def test_the_kernels_of_libraries_are_counted_not_named() -> None:
    names = ["(anonymous namespace)::scale<4>", "scale<4>", "cublasLt::splitKreduce_kernel<32>", "cutlass::Kernel2<x>"]
    assert _kernel_list([*names, "void cudnn::nchwToNhwc"]) == "scale<4>, 2 of cuBLAS, 1 of cuDNN"


def test_an_unknown_mode_and_an_empty_workspace_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="no simulation mode"):
        build_simulated(Workspace(tmp_path), "fast")
    with pytest.raises(CannotTell, match="nothing to simulate"):
        build_simulated(Workspace(tmp_path))


COOPERATIVE = r"""
#include <cooperative_groups.h>
#include <cuda_runtime.h>

// All blocks have begun before the second one comes to its array, and a relaxed store is the first to touch it.
__global__ void scale_kernel(float* out, const float* in, int size, float factor) {
    __shared__ int turn;
    int* place = &turn;
    cooperative_groups::this_grid().sync();
    const int before = FIRST;
    if (threadIdx.x == 0) asm volatile("st.relaxed.cta.b32 [%0], %1;\n" ::"l"(place), "r"(7) : "memory");
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += gridDim.x * blockDim.x)
        out[i] = turn == 7 && before == 0 ? in[i] * factor : 0.f;
}

extern "C" void scale_launcher(float* out, const float* in, int size, float factor, int config, cudaStream_t stream) {
    void* arguments[] = {&out, &in, &size, &factor};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(scale_kernel), dim3(4), dim3(64), arguments, 0, stream);
}
"""


@pytest.mark.slow
def test_a_block_that_began_early_knows_its_arrays_and_an_atomic_store_is_no_read(tmp_path: Path) -> None:
    code, record, said = sanitize(
        workspace(tmp_path / "clean", kernel=COOPERATIVE.replace("FIRST", "0")), "--mode", "race"
    )
    assert code == 0 and record["verdict"] == "CLEAN", said
    load = 'asm volatile("ld.relaxed.cta.b32 %0, [%1];\\n" : "=r"(old) : "l"(place));'
    load = f"[place] {{ int old; {load} return old & 0; }}()"
    code, record, said = sanitize(
        workspace(tmp_path / "planted", kernel=COOPERATIVE.replace("FIRST", load)), "--mode", "race"
    )
    kinds = {each["kind"] for each in record["results"]["findings"]}  # type: ignore[index]
    assert code == 1 and kinds == {"uninitialised_shared"}, said
