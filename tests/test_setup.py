"""utils.setup: which interpreter it chooses and what it would install, without installing anything."""

import subprocess
import sys
from pathlib import Path

import pytest

from utils import setup
from utils.present.outcome import CannotTell


def torch_in(folder: Path, version: str, cuda: str) -> None:
    (folder / "torch").mkdir(parents=True)
    text = f"__version__ = '{version}'\ncuda: Optional[str] = {cuda}\n"
    (folder / "torch" / "version.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "cuda", "expected"),
    [
        ("2.11.0+cu130", "'13.0'", "2.11.0+cu130"),
        ("2.9.0+cu128", "'12.8'", "2.9.0+cu128"),
        ("2.8.0+cu128", "'12.8'", None),
        ("1.13.1+cu117", "'11.7'", None),
        ("2.11.0+cpu", "None", None),
    ],
)
def test_only_a_new_enough_cuda_build_of_torch_is_used(tmp_path, monkeypatch, version, cuda, expected):
    torch_in(tmp_path, version, cuda)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert setup.cuda_torch_here() == expected


def test_an_interpreter_without_torch_is_not_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert setup.cuda_torch_here() is None


def test_missing_names_exactly_the_absent_packages_with_their_pins():
    wanted = ["pytest==0.0.1", "surely-not-a-package==1.2; python_version >= '3.10'"]
    assert setup.missing(wanted) == ["surely-not-a-package==1.2; python_version >= '3.10'"]


def test_requirement_files_pin_every_package_and_say_nothing_else():
    for file in ("requirements.txt", "requirements-dev.txt", "requirements-cuda.txt"):
        for line in setup.requirements(file):
            assert "==" in line.split(";")[0], f"{file}: {line} is not pinned"


def test_nvcc_is_found_through_cuda_home_and_path(tmp_path, monkeypatch):
    monkeypatch.setattr(setup.Path, "is_file", lambda self: str(self) == str(tmp_path / "bin" / "nvcc"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin")
    assert not setup.nvcc_here()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert setup.nvcc_here()
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", f"/usr/bin:{tmp_path / 'bin'}")
    assert setup.nvcc_here()


def test_a_failed_step_says_what_and_what_to_do():
    with pytest.raises(CannotTell, match=r"could not fail on purpose \(exit code 3.*activate an environment"):
        setup._step("fail on purpose", [sys.executable, "-c", "raise SystemExit(3)"])


def test_the_command_prints_one_interpreter_that_has_torch():
    done = subprocess.run(
        [sys.executable, "-m", "utils.setup"], cwd=setup.ROOT, capture_output=True, text=True, check=True
    )
    (interpreter,) = done.stdout.splitlines()
    code = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    assert subprocess.run([interpreter, "-c", code], check=False).returncode == 0
