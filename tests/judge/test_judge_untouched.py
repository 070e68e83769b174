"""A problem or a workbench that changes while a solution runs: told, and without a sandbox no verdict."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import ADD, judged, workspace

from utils.judge import untouched
from utils.judge.sandbox import Layers, Policy
from utils.judge.untouched import Untouched
from utils.present.outcome import CannotTell
from utils.problem.solution import find_solution
from utils.problem.workspace import find_workspace
from utils.timing.gpu import Monitor
from utils.timing.run import Options
from utils.timing.sites import find_sites
from utils.timing.tune import sweep

SOLUTION = """
class ModelNew(nn.Module):
    def choose(self, a, b, config=0):
        return a + 2 * b
    def forward(self, a, b):
        return self.choose(a, b, config=0)
"""
SANDBOX = Layers(["private file system"], {})


def rewriting(folder: Path) -> str:
    """A solution that changes the problem when it is imported."""
    return f"with open({str(folder / 'model.py')!r}, 'a') as file:\n    file.write('# easier')\n{SOLUTION}"


def test_what_is_untouched_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1")
    said: list[str] = []
    Untouched(tmp_path / "model.py").settle(Layers(), said.append)
    assert said == []


@pytest.mark.parametrize("deed", ["change", "remove", "workbench"])
def test_what_changed_is_told_under_a_sandbox_and_ends_it_without(
    deed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = tmp_path / "model.py"
    problem.write_text("x = 1")
    kept = Untouched(problem)
    if deed == "change":
        problem.write_text("x = 2")
    elif deed == "remove":
        problem.unlink()
    else:
        monkeypatch.setattr(untouched, "harness_digest", lambda: "another")
    said: list[str] = []
    kept.settle(SANDBOX, said.append)
    assert len(said) == 1 and "changed meanwhile" in said[0]
    with pytest.raises(CannotTell, match="nothing kept the solution from doing it"):
        kept.settle(Layers([], {"everything": "--no-sandbox"}), said.append)


def test_a_verification_without_a_sandbox_notices(tmp_path: Path) -> None:
    with pytest.raises(CannotTell, match="changed while the solution ran"):
        judged(tmp_path, ADD, rewriting(tmp_path), sandbox=False)


def test_a_tuning_without_a_sandbox_notices(tmp_path: Path) -> None:
    folder = workspace(tmp_path, ADD, rewriting(tmp_path))
    solution = find_solution(find_workspace(str(folder)))
    options = Options(folder / "model.py", solution, "cpu", budget=0.2, seed=1, policy=Policy(sandbox=False))
    (site,) = find_sites(solution)
    with pytest.raises(CannotTell, match="changed while the solution ran"):
        sweep(options, [site], {site.key: [0]}, Monitor(None))
