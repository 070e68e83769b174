"""What the tests of the clock share: the problem in a folder, and its trial on the CPU."""

import pytest
import torch
from timed_solutions import PROBLEM

from utils.problem.problem import load_problem
from utils.timing.sides import Trial


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("problem")
    (made / "model.py").write_text(PROBLEM)
    return made


@pytest.fixture(scope="module")
def trial(folder):
    return Trial(load_problem(folder / "model.py"), torch.device("cpu"), 11)
