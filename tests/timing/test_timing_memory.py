"""Where memory is short, a verification has it all to itself, and what is timed is set up after it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from utils.judge.thrift import Thrift, needed
from utils.problem.problem import Problem, load_problem
from utils.timing import run
from utils.timing.run import Options, _Ground


class Bases:
    """Notes what it is told, in order."""

    sessions = (1, 2)

    def __init__(self, options: Options) -> None:
        self.options, self.told = options, []  # type: ignore[var-annotated]

    def gather(self) -> None:
        self.told.append("gather")

    def know(self, trial: Any) -> None:
        self.told.append(trial)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    (tmp_path / "model.py").write_text(
        "import torch\nfrom torch import nn\n\nclass Model(nn.Module):\n    def forward(self, x):\n"
        "        return x + 1\n\n"
        "def get_inputs():\n    return [torch.rand(8)]\n\ndef get_init_inputs():\n    return []\n"
    )
    return load_problem(tmp_path / "model.py")


def laid(problem: Problem, verified: bool) -> tuple[_Ground, Any, Bases]:
    options = Options(problem.path, None, "cpu")  # type: ignore[arg-type]
    ground, session, bases = _Ground(options, {"trial": 3}), SimpleNamespace(thrift=Thrift.NONE), Bases(options)
    ground.verified = verified
    ground.lay(problem, session, bases)  # type: ignore[arg-type]
    return ground, session, bases


@pytest.mark.parametrize("verified", [False, True])
def test_with_memory_enough_all_is_set_up_beside_the_verification(verified: bool, problem: Problem) -> None:
    ground, session, bases = laid(problem, verified)
    assert ground.trial is not None and bases.told == [ground.trial]
    assert session.thrift is Thrift.NONE and not ground.options.build_alone


def test_where_it_is_short_the_trial_waits_for_the_end_of_the_verification(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_memory_short", lambda *_: True)
    ground, session, bases = laid(problem, verified=False)
    assert ground.trial is None and bases.told == ["gather"]
    ground.verified = True
    ground.lay(problem, session, bases)  # type: ignore[arg-type]
    assert ground.trial is not None and bases.told == ["gather", "gather", ground.trial]
    assert session.thrift is Thrift.DEVICE
    assert ground.options == bases.options == replace(ground.options, build_alone=True, thrift=Thrift.DEVICE)


def test_memory_is_short_once_all_processes_and_the_verification_would_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = SimpleNamespace(args=[torch.empty(300)], expected=[torch.empty(200)])
    trial = SimpleNamespace(first=draw, state={"weight": torch.empty(100)})
    wanted = 4 * 5 * 2400 + needed(Thrift.NONE, 1200, 800)
    for free, short in ((wanted, False), (wanted - 1, True)):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 1 << 40))
        assert run._memory_short(trial, "cuda:0", 5) is short  # type: ignore[arg-type]
    assert run._memory_short(trial, "cpu", 5) is False  # type: ignore[arg-type]
