"""H38: timed calls must do the work, whatever the solution remembers of the calls before.

A memo by the whole content of inputs and weights is the same function, so verification rightly passes it. Its place to
show is timing: a call whose answer is remembered is not a call of the function.
"""

from __future__ import annotations

from pathlib import Path

import torch

from utils.judge.comparing import Tolerance
from utils.problem.problem import load_problem
from utils.problem.solution import find_solution
from utils.timing.sessions import TimedSession
from utils.timing.sides import SolutionSide, Stand, Trial

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(16, 32)]
"""

SOLUTION = """
import torch
import torch.nn as nn

KNOWN = {}


class ModelNew(nn.Module):
    def forward(self, x):
        key = tuple(x.flatten().tolist())
        if key not in KNOWN:
            print("computed", flush=True)
            KNOWN[key] = torch.tanh(x)
        return KNOWN[key].clone()
"""


def test_a_memo_by_content_does_not_shorten_timed_calls(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(PROBLEM)
    (tmp_path / "solution.py").write_text(SOLUTION)
    trial = Trial(load_problem(tmp_path / "model.py"), torch.device("cpu"), 11)
    with TimedSession(find_solution(None, tmp_path / "solution.py"), "cpu") as session:
        session.ready()
        side = SolutionSide(Stand(session, trial, 3), 3, Tolerance(1e-2, 1e-2))
        for _ in range(5):
            side.run(20)
        computed = session.process.output.text().count("computed")
    assert computed >= 50, f"{computed} of 100 timed calls computed anything"
