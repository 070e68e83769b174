"""Profiling as a command: the way from arguments to record, report and history, and what is refused before it."""

import json
from types import SimpleNamespace

import pytest
from timed_solutions import HONEST, solution_in

from utils import history, profiling, tuning
from utils.judge.comparing import Tolerance
from utils.judge.failure import RunnerFailed
from utils.present.outcome import CannotTell
from utils.timing import baselines, kernels, rounds, witness
from utils.timing.gpu import Monitor
from utils.timing.result import Evidence
from utils.timing.run import Options, Verified, _launches, _refused
from utils.timing.sides import BaselineSide
from utils.timing.variants import Variant


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
