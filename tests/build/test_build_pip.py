"""setup.py: the same module through torch's extension builder, and --sim handed on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from build_space import ROOT, SCALE_BINDING, SCALE_CU, Space

from utils.build.digest import sources_digest
from utils.problem.workspace import Workspace


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of its own with the light pair as its kernels: setup.py builds the one it lies in."""
    root = tmp_path / "repository"
    root.mkdir()
    for name in ("binding.cpp", "binding_registry.h", "setup.py", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    (root / "utils").mkdir()
    shutil.copy(ROOT / "utils/__init__.py", root / "utils")
    shutil.copy(ROOT / "utils/compile.sh", root / "utils")
    for room in ("build", "present", "problem"):
        shutil.copytree(ROOT / "utils" / room, root / "utils" / room, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "kernels").mkdir()
    (root / "kernels/scale.cu").write_text(SCALE_CU)
    (root / "kernels/scale_binding.cpp").write_text(SCALE_BINDING)
    return root


def run(root: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=root, env=environment, capture_output=True, text=True, timeout=550
    )


def described(root: Path, environment: dict[str, str], folder: Path) -> tuple[dict, dict]:
    program = (
        "import json, sys, torch; sys.path.insert(0, sys.argv[1])\n"
        "import cuda_extension as c; print(json.dumps([c.__build__, c.__kernels__]))"
    )
    done = run(folder, environment, "-c", program, str(folder))
    assert done.returncode == 0, done.stderr
    build, kernels = json.loads(done.stdout)
    return build, kernels


@pytest.mark.slow
def test_pip_and_build_ext_make_the_module_of_compile_sh(
    repository: Path, build_environment: dict[str, str], tmp_path: Path
) -> None:
    environment = {**build_environment, "MAX_JOBS": "2"}
    target = tmp_path / "site"
    done = run(
        repository,
        environment,
        *("-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--target", str(target), "."),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    installed = described(repository, environment, target)
    done = run(repository, environment, "setup.py", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout + done.stderr
    in_place = described(repository, environment, repository)
    facts = json.loads((repository / "build/build_facts.json").read_text())
    assert facts["sources_sha256"] == in_place[0]["sources_sha256"]

    done = subprocess.run(
        ["bash", str(repository / "utils/compile.sh")], env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    compiled = described(repository, environment, repository)
    assert installed == in_place == compiled
    assert compiled[1]["scale"]["file"] == "kernels/scale_binding.cpp"
    assert compiled[0]["architectures"] == ["9.0a"]


def test_pip_refuses_what_would_be_one_object(repository: Path, build_environment: dict[str, str]) -> None:
    """C01: torch's builder names objects by their stem."""
    (repository / "kernels/scale.cpp").write_text("int other() { return 1; }\n")
    done = run(repository, build_environment, "setup.py", "build_ext", "--inplace")
    assert done.returncode != 0
    assert "kernels/scale.cu and kernels/scale.cpp would make one object file" in done.stderr
    assert "Traceback" not in done.stderr


def test_pip_refuses_what_the_build_refuses(repository: Path, build_environment: dict[str, str]) -> None:
    path = repository / "kernels/scale_binding.cpp"
    path.write_text(path.read_text().replace("int size, float factor, cuda", "long size, float factor, cuda"))
    done = run(repository, build_environment, "setup.py", "build_ext", "--inplace")
    assert done.returncode != 0
    assert "parameter 3 is `long size`" in done.stderr
    done = run(repository, {**build_environment, "TORCH_CUDA_ARCH_LIST": "7.0"}, "setup.py", "build_ext", "--inplace")
    assert done.returncode != 0
    assert "cannot compile for 7.0" in done.stderr
    assert "Traceback" not in done.stderr


def test_sim_without_a_simulator_says_so(repository: Path, build_environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", str(repository / "utils/compile.sh"), "--sim"],
        env=build_environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "the simulator is not there" in done.stderr


def test_sim_is_handed_to_the_simulator(repository: Path, build_environment: dict[str, str], tmp_path: Path) -> None:
    room = repository / "utils/sim"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "build.py").write_text(
        "def build_simulated(workspace, mode='plain', say=print):\n    return workspace.build / 'sim' / mode\n"
    )
    report = tmp_path / "report.json"
    command = ["bash", str(repository / "utils/compile.sh"), "--sim", "asan", "--json", str(report)]
    done = subprocess.run(command, env=build_environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "build/sim/asan" in done.stdout
    record = json.loads(report.read_text())
    assert record["simulated"] is True
    assert record["verdict"] == "BUILT"


def test_digest_is_of_names_and_contents(space: Space) -> None:
    workspace = Workspace(space.root)
    digest = sources_digest(workspace)
    assert sources_digest(workspace) == digest
    space.write("kernels/notes.txt", "not a source\n")
    assert sources_digest(workspace) == digest
    (space.root / "kernels/scale.cu").rename(space.root / "kernels/scale2.cu")
    renamed = sources_digest(workspace)
    assert renamed != digest
    (space.root / "kernels/scale2.cu").rename(space.root / "kernels/scale.cu")
    assert sources_digest(workspace) == digest
    space.write("kernels/common/unused.cuh", "")
    assert sources_digest(workspace) != digest
