"""The clock on real processes, on the CPU: sessions, baselines, timed calls that are compared, tuning, the command.

One runner takes seconds to start, so tests share what they can.
"""

import json
import textwrap
from types import SimpleNamespace

import pytest
import torch

from utils import history, profiling, tuning
from utils.judge.comparing import Tolerance
from utils.judge.failure import RunnerFailed
from utils.judge.sandbox import Policy
from utils.judge.session import Session
from utils.judge.thrift import Thrift
from utils.present.outcome import CannotTell
from utils.problem.problem import load_problem
from utils.problem.solution import find_solution
from utils.timing import baselines, kernels, rounds, tune, witness
from utils.timing.baselines import BaselineSession
from utils.timing.gpu import Monitor
from utils.timing.result import Evidence
from utils.timing.run import Options, Verified, _launches, _refused
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, NotSame, SolutionSide, Stand, Trial
from utils.timing.sites import Site, find_sites
from utils.timing.tune import sweep
from utils.timing.variants import Variant

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.tanh(x) * self.scale


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128]
"""

HEAD = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))
"""

HONEST = """
    def forward(self, x):
        return torch.tanh(x) * self.scale
"""

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

CONFIGURED = """
    def choose(self, x, config=0):
        if config < 0 or config > 3:
            raise ValueError("config must be 0 to 3")
        if config == 2:
            return torch.tanh(x) * self.scale + 1
        return torch.tanh(x) * self.scale

    def forward(self, x):
        return self.choose(x, config=0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("problem")
    (made / "model.py").write_text(PROBLEM)
    return made


@pytest.fixture(scope="module")
def trial(folder):
    return Trial(load_problem(folder / "model.py"), torch.device("cpu"), 11)


def solution_in(folder, body, name="solution.py"):
    path = folder / name
    path.write_text(HEAD + textwrap.dedent(body) if not body.startswith("\n    ") else HEAD + body)
    return find_solution(None, path)


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


@pytest.mark.slow
def test_tuning_verifies_each_value_in_one_process(folder):
    solution = solution_in(folder, CONFIGURED, "tuned.py")
    options = Options(folder / "model.py", solution, "cpu", budget=1.0, seed=1, policy=Policy(sandbox=False))
    (site,) = find_sites(solution)
    assert (site.function, site.value) == ("choose", 0)
    swept = sweep(options, [site], {}, Monitor(None))
    assert {row.value: row.state for row in swept.rows} == {0: "right", 1: "right", 2: "wrong", 3: "right"}
    assert swept.best[site.key] in (0, 1, 3)
    assert sum(row.chosen for row in swept.rows) == 1


class FakeBench:
    """Values 0 to 3 of every call; times by value, in milliseconds; `broken` gives another state than right."""

    def __init__(self, times, broken=()):
        self.times, self.broken, self.tried = times, dict(broken), []

    def verified(self, site, value, others):
        self.tried.append(value)
        if value not in self.times:
            return tune.Row(site.key, value, "refused", "config must be 0 to 3")
        return tune.Row(site.key, value, self.broken.get(value, "right"))


@pytest.fixture
def timed(monkeypatch):
    def time(bench, names, anchor, options, monitor):
        turns = {}
        for name in names:
            ms = bench.times[int(name.rpartition("=")[2])]
            turns[name] = [rounds.Turn(number, (ms, ms * 1.001, ms * 1.002), (), 0.0, 0.0, 0.0) for number in range(8)]
        return rounds.Sampled(turns, {}, rounds=8)

    monkeypatch.setattr(tune, "_time", time)


def swept_one(bench, values=(), current=0):
    site = Site("norm:3", "norm", 3, current, (3, 0), (3, 0), ", config=", "norm(x)")
    done = tune.Swept(start={"norm:3": current}, best={"norm:3": current})
    tune._sweep_one(bench, site, list(values), done, Options(None, None, "cpu"), None)
    return done


def test_the_fastest_right_value_is_chosen(timed):
    bench = FakeBench({0: 1.0, 1: 0.8, 2: 0.5, 3: 0.9}, {2: "wrong"})
    done = swept_one(bench)
    assert done.best == {"norm:3": 1}
    assert bench.tried == [0, 1, 2, 3, 4]
    assert [row.value for row in done.rows] == [0, 1, 2, 3]
    assert next(row for row in done.rows if row.value == 2).ms is None


def test_a_gain_within_the_clocks_resolution_changes_nothing(timed):
    assert swept_one(FakeBench({0: 1.0, 1: 0.995, 2: 1.2, 3: 1.0})).best == {"norm:3": 0}


def test_a_wrong_present_value_is_replaced(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 3.0, 2: 2.0}, {0: "wrong"}))
    assert done.best == {"norm:3": 2}


def test_a_given_grid_still_compares_with_the_present_value(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 0.8, 2: 0.5, 3: 0.9}), values=[3, 1])
    assert {row.value for row in done.rows} == {0, 1, 3}
    assert done.best == {"norm:3": 1}


def test_when_no_value_is_right_nothing_is_chosen(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 1.0}, {0: "wrong", 1: "crashed"}))
    assert not any(row.chosen for row in done.rows)


@pytest.fixture
def on_the_cpu(monkeypatch):
    """The commands refuse to time a CPU; tests of their ways through do it all the same."""
    for module in (profiling, tuning):
        monkeypatch.setattr(module, "find_gpu", lambda asked, solution: "cpu")
        monkeypatch.setattr(module, "device_uuid", lambda device: None)
    # Inductor's C++ compiler takes most of a minute; the way through the command is the same without it.
    kept = baselines._environment
    monkeypatch.setattr(baselines, "_environment", lambda folder: {**kept(folder), "TORCHDYNAMO_DISABLE": "1"})


@pytest.mark.slow
def test_the_command_from_arguments_to_record_report_and_history(folder, tmp_path, on_the_cpu, monkeypatch, capfd):
    monkeypatch.setenv("KERNEL_WORKBENCH_LOCKS", str(tmp_path))
    solution_in(folder, HONEST)
    page, record = tmp_path / "report.html", tmp_path / "record.json"
    arguments = [
        "--problem",
        str(folder / "model.py"),
        "--solution",
        str(folder / "solution.py"),
        "--rules",
        "relaxed",
        "--no-sandbox",
    ]
    arguments += ["--budget", "2", "--trials", "1", "--baselines", "eager", "--note", "no change", "--seed", "5"]
    code = profiling.main([*arguments, "--json", str(record), "--html", str(page)])
    written = json.loads(record.read_text())
    assert written["exit_code"] == code
    assert written["schema"] == "workbench/profiling/1"
    assert written["results"]["verification"]["verdict"] == "PASS"
    assert written["settings"]["seed"] == 5
    sides = {row["key"] for row in written["results"]["baselines"] if row["summary"]}
    assert sides == {"eager", "compile"}
    assert all(turn["samples"] for turn in written["results"]["solution"]["turns"])
    spent = written["results"]["seconds"]
    assert {"start", "trial", "verification", "baselines", "warm-up", "rounds", "kernels"} <= set(spent)
    assert all(seconds >= 0 for seconds in spent.values())
    assert spent["rounds"] + spent["warm-up"] == pytest.approx(written["results"]["sampling"]["seconds"], abs=0.5)
    assert page.read_text().startswith("<!doctype html>")
    entries, _ = history.read(folder)
    assert entries[-1]["note"] == "no change"
    assert entries[-1]["verdict"] == written["verdict"]
    assert "torch.compile" in capfd.readouterr().out


@pytest.mark.slow
def test_a_wrong_solution_is_never_timed_as_a_success(folder, tmp_path, on_the_cpu, monkeypatch):
    monkeypatch.setenv("KERNEL_WORKBENCH_LOCKS", str(tmp_path))
    wrong = solution_in(folder, HONEST.replace("* self.scale", "* self.scale * 1.5"), "wrong.py")
    record = tmp_path / "record.json"
    arguments = [
        "--problem",
        str(folder / "model.py"),
        "--solution",
        str(wrong.path),
        "--rules",
        "relaxed",
        "--no-sandbox",
    ]
    assert profiling.main([*arguments, "--trials", "1", "--baselines", "eager", "--json", str(record)]) == 1
    written = json.loads(record.read_text())
    assert written["verdict"] == "FAIL"
    assert "solution" not in written["results"]


def test_launches_are_counted_on_each_side_as_far_as_they_can_be():
    """What a side's process tells is a number of kernels; one that fails, or tells none, is left out."""

    def side(mode, answer):
        def recorded(_):
            if isinstance(answer, Exception):
                raise answer
            return answer, "" if answer else "CUPTI is not available"

        session = SimpleNamespace(select=lambda _: None, kernels=recorded)
        return BaselineSide(SimpleNamespace(session=session, inputs=None), session, Variant(mode))

    event = {"name": "add", "us": 2.0, "grid": [1, 1, 1], "block": [32, 1, 1]}
    sides = [
        side("eager", [{**event, "calls": 15}, {**event, "name": "mul", "calls": 1}]),
        side("compile", RunnerFailed("exit", "it ended", "kernels")),
        side("max-autotune", []),
    ]
    ours = kernels.table([{**event, "calls": 2}])
    assert _launches(ours, sides) == {"solution": 2, "eager": 16}
    assert _launches("not recorded", sides) == {"eager": 16}


def test_when_the_clocks_disagree_the_verdict_is_refused_and_the_samples_are_kept(folder, monkeypatch):
    """The assembly of a refused record, with evidence whose witness saw hidden time."""
    turns = {
        name: [rounds.Turn(n, (1.0, 1.01, 0.99), (), 0.1, 0.0, 0.1) for n in range(8)]
        for name in ("solution", "compile")
    }
    evidence = Evidence(
        rounds.Sampled(turns, {}, rounds=8), [Variant("compile")], {}, "default", "fp32", 0.95,
        witness=witness.judge([(1.0, [1.0] * 10)], 1.0),
    )  # fmt: skip
    session = SimpleNamespace(process=None, stage=SimpleNamespace(digests={"solution": "ab"}))
    options = Options(folder / "model.py", None, "cpu")
    verified = Verified(True, (), "fp32", Tolerance(1e-2, 1e-2))
    record = _refused(options, evidence, Monitor(None), session, verified)
    assert (record["verdict"], record["exit_code"]) == ("REFUSED", 1)
    assert "98.0000 ms per call" in record["reasons"][0]
    assert record["results"]["headline"] == record["reasons"]
    assert {row["verdict"] for row in record["results"]["baselines"]} == {"REFUSED"}
    assert len(record["results"]["solution"]["turns"]) == 8


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["--device", "cpu"], "needs a GPU"),
        (["--device", "sim"], "needs a GPU"),
        (["--baselines", "fastest"], "--baselines does not know fastest"),
        (["--baselines", ","], "an empty list"),
        (["--workspace", "no/such/folder"], "is not a folder"),
        (["--solution", "no_such.py"], "there is no solution"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(arguments, said):
    with pytest.raises(CannotTell, match=said):
        profiling.main(arguments)


_OF_BOTH = [
    (["--atol", "-1"], "--atol: -1 is not a tolerance"),
    (["--budget", "nan"], "--budget: nan is not a number above 0"),
    (["--timeout", "soon"], "--timeout: soon is not a number above 0"),
    (["--seed", "1e3"], "--seed: 1e3 is not a seed"),
    (["--seed", "-1"], "--seed: -1 is not a seed"),
]
_OF_PROFILING = [
    (["--target", "0"], "--target: 0 is not a number above 0"),
    (["--trials", "0"], "--trials: 0 is not a whole number from 1 to 1000"),
]


@pytest.mark.parametrize(
    "command, arguments, said",
    [(profiling, *each) for each in _OF_BOTH + _OF_PROFILING] + [(tuning, *each) for each in _OF_BOTH],
)
def test_a_number_that_cannot_be_is_refused_before_anything_runs(command, arguments, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


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
