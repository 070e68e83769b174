"""Calls that are judged and calls that are timed look alike to the solution, as far as one request goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from judging import ADD, judged, workspace

from utils.judge.session import Session
from utils.problem.problem import load_problem
from utils.problem.solution import find_solution
from utils.problem.workspace import find_workspace
from utils.timing.sessions import TimedSession
from utils.timing.sides import Stand, Trial

SOLUTION = ADD.split("def get_inputs")[0].replace("Model(", "ModelNew(")
# Parts of a request that change from call to call or name memory.
_OTHER = ("inputs", "deliver", "spans", "outputs", "seed", "poison", "flush", "record", "hold")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The requests to call forward, as they are sent."""
    kept: list[dict[str, Any]] = []
    exchange = Session._exchange

    def noting(self: Session, op: str, request: dict[str, Any], timeout: float | None) -> dict[str, Any]:
        if op == "call":
            kept.append(request)
        return exchange(self, op, request, timeout)

    monkeypatch.setattr(Session, "_exchange", noting)
    return kept


def manner(request: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in _OTHER}


def test_one_call_of_each_trial_is_asked_for_as_timed_ones_are(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    assert judged(tmp_path / "judged", ADD, SOLUTION, trials=8).passed
    calls = [asked[number : number + 3] for number in range(0, 24, 3)]
    asked.clear()
    folder = workspace(tmp_path / "timed", ADD, SOLUTION)
    trial = Trial(load_problem(folder / "model.py"), torch.device("cpu"), 11)
    with TimedSession(find_solution(find_workspace(str(folder))), "cpu") as session:
        session.ready()
        Stand(session, trial, 3).call()
    timed = manner(asked[0])
    alike = [[manner(request) == timed for request in three] for three in calls]
    assert all(three.count(True) == 1 for three in alike), alike
    # Which one it is cannot be told beforehand.
    assert len({three.index(True) for three in alike}) > 1
    assert all(request["late"] for three in calls for request in three if manner(request) != timed)


def test_seeds_of_calls_do_not_tell_of_one_another(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    assert judged(tmp_path, ADD, SOLUTION, trials=3).passed
    seeds = [request["seed"] for request in asked]
    assert len(set(seeds)) == len(seeds) >= 9
    assert all(abs(one - two) > 1 << 20 for number, one in enumerate(seeds) for two in seeds[:number])


def test_random_numbers_of_the_model_are_the_same_for_the_same_inputs(
    tmp_path: Path, asked: list[dict[str, Any]]
) -> None:
    problem = ADD.replace("a + 2 * b", "a + 2 * b + torch.rand(64)")
    done = judged(tmp_path, problem, problem.split("def get_inputs")[0].replace("Model(", "ModelNew("))
    assert done.passed, done.reasons
    seeds = [request["seed"] for request in asked[:6]]
    assert seeds[0] == seeds[2] and seeds[3] == seeds[5] and len(set(seeds)) == 4
    assert {trial.repeatable for trial in done.trials.records} == {"bit for bit"}
