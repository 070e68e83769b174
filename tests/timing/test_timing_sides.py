"""The clock on real processes, on the CPU: sessions, baselines, timed calls that are compared.

One runner takes seconds to start, so tests share what they can.
"""

import json

import pytest
import torch
from timed_solutions import HONEST, PROBLEM, solution_in

from utils.judge.comparing import Tolerance
from utils.judge.sandbox import Policy
from utils.judge.session import Session
from utils.judge.thrift import Thrift
from utils.problem.problem import load_problem
from utils.timing import baselines, rounds, witness
from utils.timing.baselines import BaselineSession
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, NotSame, SolutionSide, Stand, Trial
from utils.timing.variants import Variant

MEMOISED = """
    kept = {}

    def forward(self, x):
        if x.data_ptr() not in self.kept:
            self.kept[x.data_ptr()] = torch.tanh(x) * self.scale
        return self.kept[x.data_ptr()].clone()
"""

BY_ROWS = """
    rows = set()

    def forward(self, x):
        fresh = {tuple(row.tolist()) for row in x} - self.rows
        print(len(fresh), "new", flush=True)
        self.rows |= fresh
        return torch.tanh(x) * self.scale
"""

FORGETFUL = """
    calls = 0

    def forward(self, x):
        self.calls += 1
        return torch.tanh(x) * self.scale if self.calls < 4 else torch.empty_like(x)
"""

# Finds the runner's timer and halves and more what it says.
PATCHED = """
    def forward(self, x):
        import gc
        import time

        for thing in gc.get_objects():
            if type(thing).__name__ == "DeviceTimer":
                type(thing).elapsed_ms = lambda self, mark: 0.001
        time.sleep(0.03)
        return torch.tanh(x) * self.scale
"""


@pytest.fixture
def side_of(folder, trial):
    opened = []

    def make(body):
        session = TimedSession(solution_in(folder, body), "cpu", policy=Policy(sandbox=False))
        opened.append(session)
        session.ready()
        return SolutionSide(Stand(session, trial, 3), 3, Tolerance(1e-2, 1e-2))

    yield make
    for session in opened:
        session.close()


@pytest.fixture(scope="module")
def baseline(folder, trial):
    session = BaselineSession(folder / "model.py", "cpu", "default")
    session.ready()
    stand = Stand(session, trial, 3)
    assert session.prepare(Variant("eager"), stand.inputs).error is None
    yield session, stand
    session.close()


def test_an_honest_solution_is_timed_and_its_timed_calls_are_compared(side_of):
    side = side_of(HONEST)
    batch = side.run(12)
    assert len(batch.samples) == 12
    assert all(sample > 0 for sample in batch.samples)
    assert batch.wall > sum(batch.samples) / 1e3
    assert side.checked >= 1


def test_requests_of_compared_calls_look_like_all_others_and_no_inputs_come_twice(side_of, baseline):
    side, (session, stand) = side_of(HONEST), baseline
    trusted = BaselineSide(stand, session, Variant("eager"))
    asked, values, seeds = [], set(), set()

    def watch(one):
        ask = one.session._ask

        def noted(op, request, timeout=None):
            if op == "call":
                asked.append(request)
                (group,) = one.inputs._groups.values()
                values.add((id(one), group.pristine.numpy().tobytes()))
                seeds.add((id(one), request["seed"]))
            return ask(op, request, timeout)

        return noted

    kept = session._ask
    side.stand.session._ask = watch(side.stand)
    session._ask = watch(stand)
    try:
        for _ in range(2):
            side.run(20)
            trusted.run(20)
    finally:
        session._ask = kept
    assert len(asked) == len(values) == len(seeds) == 80
    assert side.checked >= 2
    changing = {"seed", "poison", "inputs", "deliver", "spans", "outputs"}
    assert {json.dumps({k: v for k, v in r.items() if k not in changing}, sort_keys=True) for r in asked[:20]} == {
        json.dumps({k: v for k, v in r.items() if k not in changing}, sort_keys=True) for r in asked
    }


def test_a_row_kept_from_an_earlier_call_is_no_use(side_of):
    """Row by row the inputs are new as well: a solution that computes only rows it has not seen computes all."""
    side = side_of(BY_ROWS)
    side.run(10)
    assert side.stand.session.process.output.text().count("64 new") == 10


def test_a_reference_that_wants_its_inputs_as_drawn_gets_them(tmp_path):
    (tmp_path / "model.py").write_text(
        PROBLEM.replace("return torch.tanh(x)", "torch.linalg.cholesky(x)\n        return torch.tanh(x)").replace(
            "torch.randn(64, 128)", "(lambda a: a @ a.T + 1e-3 * torch.eye(128))(torch.randn(128, 128))"
        )
    )
    trial = Trial(load_problem(tmp_path / "model.py"), torch.device("cpu"), 5)
    for seed in range(4):
        trial.renew(seed)
        trial.answered(trial.values, 1)


def test_inputs_that_require_gradients_change_too(tmp_path):
    (tmp_path / "model.py").write_text(PROBLEM.replace("randn(64, 128)", "randn(64, 128, requires_grad=True)"))
    trial = Trial(load_problem(tmp_path / "model.py"), torch.device("cpu"), 5)
    before = trial.values[0].detach().clone()
    trial.renew(1234)
    assert trial.values[0].requires_grad
    assert not torch.equal(before, trial.values[0])
    assert not trial.stateful


def test_a_memoised_answer_is_found_among_timed_calls(side_of):
    side = side_of(MEMOISED)
    with pytest.raises(NotSame, match="timed call differs"):
        for _ in range(12):
            side.run(4)


def test_a_solution_that_stops_working_when_timed_is_found(side_of):
    side = side_of(FORGETFUL)
    with pytest.raises(NotSame, match="timed call differs"):
        for _ in range(12):
            side.run(4)


def test_a_patched_timer_is_refused_by_the_judges_clock(side_of, baseline):
    session, stand = baseline
    trusted = BaselineSide(stand, session, Variant("eager"))
    around = witness.surroundings([(batch.wall, batch.samples) for batch in (trusted.run(6) for _ in range(4))])
    lying = side_of(PATCHED)
    lying.run(1)
    found = witness.judge([(batch.wall, batch.samples) for batch in (lying.run(6) for _ in range(3))], around)
    assert not found.agrees
    assert found.reported_ms == pytest.approx(0.001)
    assert found.hidden_ms > 15


def test_end_to_end_time_is_the_judges(side_of):
    """Calls that sleep 5 ms and tell the timer nothing take 5 ms by the judge's clock."""
    stand = side_of(HONEST.replace("return", "__import__('time').sleep(0.005)\n        return")).stand
    assert stand.session.end_to_end_ms(stand.inputs, 0.5) > 3.0


def test_graph_replay_and_kernels_say_why_they_are_missing(side_of):
    stand = side_of(HONEST).stand
    assert stand.session.replay(stand.inputs, 3) == ([], "CUDA graphs need a GPU")
    events, why = stand.session.kernels(stand.inputs)
    assert events == []
    assert "GPU" in why


def test_a_baseline_that_cannot_be_built_is_an_answer(baseline):
    session, stand = baseline
    built = session.prepare(Variant("no-such-mode"), stand.inputs)
    assert built.error is not None
    assert session.alive


def test_a_baseline_process_that_dies_drops_out(folder, trial):
    session = BaselineSession(folder / "model.py", "cpu", "default")
    session.ready()
    stand = Stand(session, trial, 3)
    session.prepare(Variant("eager"), stand.inputs)
    session.process._process.kill()
    with pytest.raises(rounds.SideFailed):
        BaselineSide(stand, session, Variant("eager")).run(3)
    session.close()
    assert not session.process.folder.exists()


def test_settings_that_disable_the_compiler_do_not_reach_the_baselines(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/somewhere/shared")
    made = baselines._environment(tmp_path)
    assert "TORCHDYNAMO_DISABLE" not in made
    assert made["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")


def test_baseline_caches_are_private_and_vanish(baseline):
    session, _ = baseline
    environment = (f"/proc/{session.process.pid}/environ",)
    with open(*environment, "rb") as file:
        variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    for name in (b"TORCHINDUCTOR_CACHE_DIR", b"TRITON_CACHE_DIR"):
        assert variables[name].decode().startswith(str(session.process.folder))


def test_a_reference_that_keeps_state_is_noticed(tmp_path):
    (tmp_path / "model.py").write_text(
        PROBLEM.replace(
            "return torch.tanh(x)", "self.n = getattr(self, 'n', 0) + 1\n        return self.n + torch.tanh(x)"
        )
    )
    assert Trial(load_problem(tmp_path / "model.py"), torch.device("cpu"), 5).stateful


def test_where_memory_is_short_values_go_straight_in_and_the_runner_keeps_its_caches(folder, trial, monkeypatch):
    session = TimedSession(solution_in(folder, HONEST, "spare.py"), "cpu", policy=Policy(sandbox=False))
    session.thrift = Thrift.DEVICE
    asked = []
    ask = session._ask

    def noted(op, request, timeout=None):
        asked.append((op, request))
        return ask(op, request, timeout)

    monkeypatch.setattr(session, "_ask", noted)
    try:
        session.ready()
        stand = Stand(session, trial, 3)
        found = stand.compared(stand.call(), {}, Tolerance(1e-2, 1e-2))
        assert found.passed
        (group,) = stand.inputs._groups.values()
        assert group.pristine.untyped_storage().data_ptr() == trial.values[0].untyped_storage().data_ptr()
        (call,) = [request for op, request in asked if op == "call"]
        assert call["frugal"] is False and call["deliver"] == []
    finally:
        session.close()


def test_sessions_that_can_be_profiled_hold_the_state_every_session_holds(folder):
    """TimedSession and BaselineSession set up their own state; a new attribute of Session must not be forgotten."""
    solution = solution_in(folder, HONEST)
    plain = Session(solution, "cpu", policy=Policy(sandbox=False))
    timed = TimedSession(solution, "cpu", policy=Policy(sandbox=False))
    base = BaselineSession(folder / "model.py", "cpu", "default")
    try:
        assert set(vars(plain)) <= set(vars(timed))
        assert set(vars(plain)) - {"solution", "stage"} <= set(vars(base))
    finally:
        for session in (plain, timed, base):
            session.close()
