"""The clock on a real GPU: baselines of every mode, the figures beside the device time, and the whole command."""

import json

import pytest
import torch

from utils import profiling
from utils.judge.comparing import Tolerance
from utils.judge.sandbox import Policy
from utils.problem.problem import load_problem
from utils.problem.solution import find_solution
from utils.timing import kernels, limits, statistics
from utils.timing.baselines import BaselineSession
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, SolutionSide, Stand, Trial
from utils.timing.variants import MODES, Variant

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")]

PROBLEM = """
import torch
import torch.nn as nn


class {name}(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, x):
        return torch.nn.functional.gelu(self.first(x)) + x


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return [512]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("device")
    (made / "model.py").write_text(PROBLEM.format(name="Model"))
    (made / "solution.py").write_text(PROBLEM.format(name="ModelNew"))
    return made


@pytest.fixture(scope="module")
def trial(folder):
    return Trial(load_problem(folder / "model.py"), torch.device("cuda:0"), 5)


@pytest.fixture(scope="module")
def baseline(folder, trial):
    session = BaselineSession(folder / "model.py", "cuda:0", "default")
    session.ready()
    yield session, Stand(session, trial, 5)
    session.close()


@pytest.fixture(scope="module")
def solution(folder, trial):
    session = TimedSession(find_solution(None, folder / "solution.py"), "cuda:0", policy=Policy(hide=(folder,)))
    session.ready()
    yield Stand(session, trial, 5)
    session.close()


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_built_timed_and_right(baseline, mode):
    session, stand = baseline
    built = session.prepare(Variant(mode), stand.inputs)
    assert built.error is None
    assert (built.graphs > 0) == (mode != "eager")
    side = BaselineSide(stand, session, Variant(mode))
    batch = side.run(12)
    assert all(0 < sample < 50 for sample in batch.samples)
    # A CUDA-graph mode overwrites its outputs: two calls in a row on other inputs must both come out right.
    for _ in range(4):
        assert stand.compared(stand.call(), {}, Tolerance(1e-2, 1e-2)).passed
    assert session.built[mode].recompiled == 0


def test_figures_beside_the_device_time(solution):
    times = SolutionSide(solution, 1, Tolerance(1e-2, 1e-2)).run(20).samples
    assert solution.session.end_to_end_ms(solution.inputs, statistics.median(times)) > 0
    replayed, why = solution.session.replay(solution.inputs, 20)
    assert why == ""
    assert len(replayed) == 20
    assert 0.2 < statistics.median(replayed) / statistics.median(times) < 2


def test_kernels_are_seen_through_the_sandbox(solution):
    events, why = solution.session.kernels(solution.inputs)
    assert why == ""
    rows = kernels.table(events)
    assert {row.family for row in rows} & {"cuBLAS"}
    assert any(row.foreign and row.family == "torch" for row in rows)
    assert all(row.registers for row in rows if row.family == "torch")


def test_the_devices_own_rates(baseline):
    session, _ = baseline
    rates = limits.Rates(**session.rates(["fp32", "tf32", "bf16"]))
    assert 1e11 < rates.copy < 2e13
    assert 1e12 < rates.matrix["fp32"] < rates.matrix["bf16"] < 1e16
    if torch.cuda.get_device_capability() >= (8, 0):
        assert rates.matrix["tf32"] > rates.matrix["fp32"]


@pytest.mark.slow
def test_the_whole_command(folder, tmp_path):
    record, page = tmp_path / "record.json", tmp_path / "report.html"
    arguments = ["--problem", str(folder / "model.py"), "--solution", str(folder / "solution.py"), "--rules", "relaxed"]
    code = profiling.main([*arguments, "--json", str(record), "--html", str(page)])
    written = json.loads(record.read_text())
    assert written["exit_code"] == code
    assert written["results"]["verification"]["verdict"] == "PASS"
    assert written["results"]["witness"]["agrees"], written["results"]["witness"]["sentence"]
    rows = {row["key"]: row for row in written["results"]["baselines"]}
    # The solution is eager itself: nothing but SAME or UNSURE can be true.
    assert rows["eager"]["verdict"] in (statistics.SAME, statistics.UNSURE), rows["eager"]["ratio"]
    assert written["results"]["limit"]["kind"] in ("memory", "matrix", "latency", "other")
    assert written["results"]["kernels"]
    assert written["results"]["checked_calls"] > 8
