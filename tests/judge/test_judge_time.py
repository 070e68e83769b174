"""What a verification spends its time on, and what it does without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from judging import ADD, LINEAR, judged, workspace

from utils import rules
from utils.judge import reading
from utils.judge import reference as references
from utils.judge.clock import Clock, process_begun
from utils.judge.reading import Reading
from utils.present.outcome import CannotTell
from utils.problem.solution import Solution, find_solution
from utils.problem.workspace import find_workspace

ROOT = Path(__file__).resolve().parents[2]


def test_stages_add_up_and_parts_lie_within() -> None:
    clock = Clock(time.monotonic() - 1.0)
    clock.lap("one")
    with clock.part("work"):
        time.sleep(0.02)
    clock.lap("two")
    assert 1.0 <= clock.laps["one"] < 5.0
    assert 0.02 <= clock.parts["work"] <= clock.laps["two"]


def test_the_begin_of_the_process_is_told() -> None:
    code = "import time; time.sleep(0.5); from utils.judge.clock import process_begun; "
    code += "print(time.monotonic() - process_begun())"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert 0.5 <= float(told) < 10
    assert process_begun() < time.monotonic()


def test_no_side_imports_the_compiler_of_torch(tmp_path: Path) -> None:
    """torch._dynamo and what it imports take seconds, in either process."""
    forward = "import sys\nprint('compiler in the runner:', 'torch._dynamo' in sys.modules)\nreturn a + 2 * b"
    lines = "".join(f"        {line}\n" for line in forward.split("\n"))
    workspace(tmp_path, ADD, f"class ModelNew(nn.Module):\n    def forward(self, a, b):\n{lines}")
    code = "import sys; from utils.verification import main; "
    code += "main(sys.argv[1:]); print('compiler in the judge:', 'torch._dynamo' in sys.modules)"
    arguments = ["--workspace", str(tmp_path), "--device", "cpu", "--rules", "relaxed", "--trials", "1"]
    arguments += ["--verbose", "--json", str(tmp_path / "record.json")]
    variables = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, env=variables
    )
    assert "compiler in the judge: False" in done.stdout, done.stdout + done.stderr
    assert "compiler in the runner: False" in done.stdout and "compiler in the runner: True" not in done.stdout
    results = json.loads((tmp_path / "record.json").read_text())["results"]
    assert {"start", "torch", "study", "trials", "end"} <= set(results["seconds"])
    assert {"runner: hello", "runner: call", "draw inputs", "compare"} <= set(results["seconds_within"])


def test_what_a_problem_sets_is_put_back(tmp_path: Path) -> None:
    problem = "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.benchmark = True\n" + ADD
    solution = ADD.split("def get_inputs")[0].replace("Model(", "ModelNew(")
    done = judged(tmp_path, problem, solution)
    assert done.passed, done.reasons
    told = " ".join(str(finding) for finding in done.findings.of("note"))
    assert "deterministic algorithms" in told and "torch.backends.cudnn.benchmark" in told
    assert not torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.benchmark


def test_inputs_are_drawn_no_more_often_than_needed(tmp_path: Path) -> None:
    counting = ADD.replace("def get_inputs():", "DRAWN = []\ndef get_inputs():\n    DRAWN.append(1)")
    done = judged(tmp_path, counting, ADD.split("def get_inputs")[0].replace("Model(", "ModelNew("), trials=5)
    assert done.passed and done.trials is not None
    # The study draws two; trial 1 draws x and y, the others x alone.
    assert len(done.trials._problem.module.DRAWN) == 8
    assert [trial.calls[1].label for trial in done.trials.records] == [
        "another draw",
        "the x of the trial before",
        "x partly changed",
        "the x of the trial before",
        "x partly changed",
    ]


def test_exit_functions_run_and_what_they_print_is_kept(tmp_path: Path) -> None:
    top = "import atexit\natexit.register(lambda: print('goodbye'))\n"
    done = judged(tmp_path, ADD, top + ADD.split("def get_inputs")[0].replace("Model(", "ModelNew("))
    assert done.passed and "goodbye" in done.output


def test_a_process_that_does_not_end_politely_is_ended(tmp_path: Path) -> None:
    top = "import atexit, time\natexit.register(lambda: time.sleep(1000))\n"
    begun = time.monotonic()
    done = judged(tmp_path, ADD, top + ADD.split("def get_inputs")[0].replace("Model(", "ModelNew("))
    assert done.passed and time.monotonic() - begun < 60


def test_rules_are_read_as_in_this_process(tmp_path: Path) -> None:
    folder = workspace(
        tmp_path, LINEAR, "class ModelNew(nn.Module):\n    def forward(self, x):\n        return x @ x\n"
    )
    solution = find_solution(find_workspace(str(folder)))
    with Reading(solution, folder / "model.py") as read:
        found = read.result()
    assert found and found == rules.static_violations(solution, folder / "model.py")


def test_a_file_that_is_no_python_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("def (")
    with (
        Reading(Solution("python", tmp_path / "solution.py", None), tmp_path / "model.py") as read,
        pytest.raises(CannotTell, match="not valid Python"),
    ):
        read.result()


def test_a_reader_that_dies_is_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_BOOT", "raise SystemExit(3)")
    with (
        Reading(Solution("python", tmp_path / "solution.py", None), tmp_path / "model.py") as read,
        pytest.raises(RuntimeError, match="ended with 3"),
    ):
        read.result()


def test_the_solution_is_imported_after_the_rules_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sandbox is lacking it could change its sources while they are read."""
    monkeypatch.setattr(reading, "_BOOT", "import time; time.sleep(6)\n" + reading._BOOT)
    top = "import time\nprint('imported at', time.monotonic())\n"
    begun = time.monotonic()
    done = judged(tmp_path, ADD, top + ADD.split("def get_inputs")[0].replace("Model(", "ModelNew("))
    assert float(done.output.split("imported at")[1].split()[0]) - begun > 6


def test_placed_inputs_keep_strides_aliases_and_gradients() -> None:
    base = torch.arange(24.0).reshape(4, 6)
    wanted = torch.ones(3, requires_grad=True)
    given = [base, base.t(), base[1:, ::2], base, torch.ones(2).expand(5, 2), wanted, 3, {"a": (base[0], None)}]
    one = references.placed(given, torch.device("meta"))
    for before, after in zip(given[:6], one[:6], strict=True):
        assert after.device.type == "meta"
        assert (after.shape, after.stride(), after.storage_offset()) == (
            before.shape,
            before.stride(),
            before.storage_offset(),
        )
    assert one[0] is one[3] and one[5].requires_grad and one[5].is_leaf and one[6] == 3
    storages = {tensor.untyped_storage()._cdata for tensor in (one[0], one[1], one[2], one[7]["a"][0])}
    assert len(storages) == 1
    assert references.storage_bytes(given) == 24 * 4 + 2 * 4 + 3 * 4
    assert references.placed(given, torch.device("cpu"))[0] is base
