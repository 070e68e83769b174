"""A Python without what the commands need is told so in one sentence, which is no verdict."""

from __future__ import annotations

import subprocess
import sys

import pytest

from utils.present import missing, outcome
from utils.problem.workspace import ROOT


@pytest.mark.parametrize("command", ["check", "verification", "profiling", "sanitize", "history", "gallery", "run"])
def test_a_command_under_a_bare_python_says_what_is_missing(command: str) -> None:
    # -S: without site-packages, so that nothing installed is found.
    done = subprocess.run(
        [sys.executable, "-S", "-m", f"utils.{command}"], cwd=ROOT, env={}, capture_output=True, text=True, check=False
    )
    assert done.returncode == outcome.CANNOT_TELL, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: the package ") and "python3 -m utils.setup" in line


def test_a_package_that_is_imported_late_is_told_likewise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(_: object) -> int:
        raise ModuleNotFoundError("No module named 'torch._C'", name="torch._C")

    # Where torch is loaded, a command ends its process on the spot: here that would be the tests'.
    left: list[int] = []
    monkeypatch.setattr(outcome, "_leave", left.append)
    outcome.run(main)
    assert left == [outcome.CANNOT_TELL]
    assert "the package torch is not installed" in capsys.readouterr().err


def test_other_failures_are_none_of_it() -> None:
    for error in (ModuleNotFoundError("x", name="utils.nothing"), ModuleNotFoundError("x"), ImportError("torch")):
        assert missing.sentence(error) is None


def test_every_requirement_is_known() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    named = {line.partition("==")[0].lower().replace("-", "_") for line in lines if "==" in line}
    named -= {"setuptools"}  # for pip install . alone
    imported = {"nvidia_ml_py": "pynvml"}
    assert {imported.get(name, name) for name in named} == set(missing.PACKAGES)
