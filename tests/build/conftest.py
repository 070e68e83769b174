"""Workspaces to build in: a built one is made once, and each test starts from a copy of it, so that only what the test
changes is compiled."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from build_space import FILES, SCALE_BINDING, SCALE_CU, Space


@pytest.fixture(scope="session")
def build_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment for builds that neither depends on the caller's nor touches the caller's cache folder."""
    from utils.build.toolchain import find_nvcc, find_python_torch
    from utils.present.outcome import CannotTell

    try:
        find_nvcc(find_python_torch())
    except CannotTell as reason:
        pytest.skip(f"nothing can be compiled here: {reason}")
    dropped = ("MAX_JOBS", "CXX", "CC", "NVCC_CCBIN", "VIRTUAL_ENV", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    return {
        **environment,
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")),
        "TORCH_CUDA_ARCH_LIST": "9.0",
        # Half a gigabyte of precompiled header is nothing to leave in a temporary folder.
        "KERNEL_WORKBENCH_PCH": "0",
        "KERNEL_WORKBENCH_PYTHON": sys.executable,
    }


@pytest.fixture(scope="session")
def built_once(tmp_path_factory: pytest.TempPathFactory, build_environment: dict[str, str]) -> Space:
    """A built workspace with the documented example's pair and the light one. Not to be changed: see `space`."""
    space = Space(tmp_path_factory.mktemp("built") / "ws", build_environment)
    for name in ("my_kernel.cu", "my_kernel_binding.cpp"):
        space.write(f"kernels/{name}", (FILES / name).read_text())
    space.write("kernels/scale.cu", SCALE_CU)
    space.write("kernels/scale_binding.cpp", SCALE_BINDING)
    outcome = space.compile()
    assert outcome.code == 0, outcome.text
    return space


@pytest.fixture
def space(built_once: Space, tmp_path: Path) -> Space:
    """A copy of the built workspace, with its times, so that nothing in it needs compiling."""
    copy = Space(tmp_path / "ws", built_once.environment)
    shutil.copytree(built_once.root, copy.root, symlinks=True)
    return copy


@pytest.fixture
def light_space(space: Space) -> Space:
    """The same without the torch binding: for tests that make everything compile again."""
    for name in ("my_kernel.cu", "my_kernel_binding.cpp"):
        (space.root / "kernels" / name).unlink()
    return space
