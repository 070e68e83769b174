"""Which tools are taken, and which are refused: jobs, torch, nvcc, ninja, GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build_space import ROOT

from utils.build import (
    architectures,
    flags,
    gpus,
    plan,
    toolchain,
)
from utils.present.outcome import CannotTell


@pytest.mark.parametrize("text", ["0", "-2", "two", "1e3"])
def test_jobs_that_are_none(text: str) -> None:
    with pytest.raises(CannotTell, match="MAX_JOBS"):
        flags.jobs({"MAX_JOBS": text})


def test_jobs() -> None:
    assert flags.jobs({"MAX_JOBS": " 3 "}) == 3
    assert flags.jobs({}) >= 1


def nvcc(version: str) -> toolchain.Nvcc:
    return toolchain.Nvcc(Path("/opt/cuda/bin/nvcc"), Path("/opt/cuda"), "CUDA_HOME", version, ())


def torch(cuda: str) -> toolchain.Torch:
    return toolchain.Torch(Path("/py"), Path("/site/torch"), "2.11.0", cuda, Path("/inc"), ".so")


def test_cuda_versions() -> None:
    assert toolchain.check_versions(nvcc("13.0.88"), torch("13.0")) is None
    warning = toolchain.check_versions(nvcc("13.1.5"), torch("13.0"))
    assert warning is not None
    assert "13.1.5" in warning
    with pytest.raises(CannotTell, match=r"12\.4.*13\.0"):
        toolchain.check_versions(nvcc("12.4.1"), torch("13.0"))


@pytest.mark.parametrize(
    ("version_py", "words"),
    [
        ("__version__ = '2.11.0+cpu'\ncuda: Optional[str] = None\n", "built without CUDA"),
        ("__version__ = '2.8.1+cu128'\ncuda: Optional[str] = '12.8'\n", "too old"),
        ("__version__ = '1.13.0'\ncuda = '11.7'\n", "too old"),
    ],
)
def test_torch_that_is_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version_py: str, words: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "torch/version.py").write_text(version_py)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(CannotTell, match=words):
        toolchain.find_python_torch()


def test_nvcc_of_the_wheels_is_found_where_there_is_no_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "nvidia/cu13"
    (wheel / "bin").mkdir(parents=True)
    (wheel / "include").mkdir()
    (wheel / "include/cuda_runtime.h").write_text("")
    (wheel / "bin/nvcc").write_text("#!/bin/sh\n")
    (wheel / "bin/nvcc").chmod(0o755)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "")
    here = toolchain.Torch(Path("/py"), tmp_path / "torch", "2.11.0", "13.0", Path("/inc"), ".so")
    candidates = toolchain._nvcc_candidates(here)
    assert (wheel / "bin/nvcc", "the toolkit's wheels") in candidates
    assert candidates[-1][0] == wheel / "bin/nvcc"


def test_cxx_with_a_launcher_gives_nvcc_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ccache").write_text("#!/bin/sh\n")
    (tmp_path / "ccache").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = toolchain.find_host_compiler({"CXX": "ccache g++"})
    assert found.command == ("ccache", "g++")
    assert found.for_nvcc == "g++"
    with pytest.raises(CannotTell, match="CXX=nothing-there"):
        toolchain.find_host_compiler({"CXX": "nothing-there"})


def test_ninja_is_looked_for_beside_the_interpreter_and_in_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C11: an interpreter called by its path alone has no PATH to its tools."""

    def ninja_in(folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "ninja").write_text("#!/bin/sh\n")
        (folder / "ninja").chmod(0o755)
        return folder / "ninja"

    package = tmp_path / "site/ninja"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain.sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(toolchain.sysconfig, "get_path", lambda name: str(tmp_path / "scripts"))
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CannotTell, match="pip install ninja"):
        toolchain.find_ninja()
    inside = ninja_in(package / "data/bin")
    spec = type("Spec", (), {"origin": str(package / "__init__.py")})
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: spec)
    assert toolchain.find_ninja() == inside
    beside = ninja_in(tmp_path / "bin")
    assert toolchain.find_ninja() == beside
    # Not the one that this shell's PATH leads to: another version would compile everything again.
    monkeypatch.setenv("PATH", str(ninja_in(tmp_path / "system").parent))
    assert toolchain.find_ninja() == beside


def test_cuda_home_without_nvcc_is_told(tmp_path: Path) -> None:
    warning = toolchain.idle_cuda_home({"CUDA_HOME": str(tmp_path)})
    assert warning is not None
    assert str(tmp_path) in warning
    assert toolchain.idle_cuda_home({}) is None


# GPUs


def test_build_that_does_not_cover_a_visible_gpu_is_warned_of() -> None:
    """C53"""
    built = architectures.parse_arch_list("8.0")
    (warning,) = plan.coverage_warnings(built, [(9, 0)])
    assert "built for sm_80, but a visible GPU is sm_90" in warning
    assert "TORCH_CUDA_ARCH_LIST=9.0" in warning
    assert plan.coverage_warnings(architectures.parse_arch_list("8.0+PTX"), [(9, 0)]) == []
    assert plan.coverage_warnings(built, []) == []


FAKE_NVML = r"""
#include <stdio.h>
#include <stdint.h>
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
    *handle = (void*)(0x700000000000 + index);
    return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* handle, int* major, int* minor) {
    *major = (uintptr_t)handle == 0x700000000000 ? 9 : 8;
    *minor = (uintptr_t)handle == 0x700000000000 ? 0 : 6;
    return 0;
}
static int id(void* handle) { return (int)((uintptr_t)handle & 1); }
int nvmlDeviceGetName(void* handle, char* name, unsigned size) { return snprintf(name, size, "Fake %d", id(handle)); }
int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned size) { return snprintf(uuid, size, "GPU-%d", id(handle)); }
"""
FAKE_DRIVER = r"""
#include <stdio.h>
int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int* count) { *count = 1; return 0; }
int cuDeviceGet(int* device, int index) { *device = index; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, size, "Driver %d", device); return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return device; }
"""


@pytest.mark.parametrize(
    ("source", "library", "function", "expected"),
    [
        (FAKE_NVML, "libnvidia-ml.so.1", "_from_nvml", [("Fake 0", (9, 0), "GPU-0"), ("Fake 1", (8, 6), "GPU-1")]),
        (FAKE_DRIVER, "libcuda.so.1", "_from_driver", [("Driver 0", (9, 0), "")]),
    ],
)
def test_gpus_are_asked_for_through_the_libraries(
    tmp_path: Path, source: str, library: str, function: str, expected: list[tuple[str, tuple[int, int], str]]
) -> None:
    """Against libraries with the entry points of the real ones, 64-bit handles included."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    (tmp_path / "fake.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "fake.c", "-o", library], cwd=tmp_path, check=True)
    program = f"import utils.build.gpus as g; print([(x.name, x.capability, x.uuid) for x in g.{function}()])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == repr(expected), done.stderr


def test_nvidia_smi_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 'NVIDIA H200, 9.0, GPU-1'\necho 'broken'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert gpus._from_nvidia_smi() == [gpus.Gpu("NVIDIA H200", (9, 0), "GPU-1")]
