"""The gallery command: steps that are resumed only while nothing changed, failures that stop nothing, honest rows."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from utils.build.gpus import Gpu
from utils.gallery import __main__ as command
from utils.gallery import plot, steps, summary
from utils.gallery.__main__ import main
from utils.present.outcome import CANNOT_TELL, NO, YES, CannotTell
from utils.problem.workspace import ROOT, Workspace

# A command of the workbench, in small: counts its runs, writes the record --json asks for, ends with a given code.
COMMAND = """
import json, sys
from pathlib import Path
runs, code, target = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[4])
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
target.write_text(json.dumps({"exit_code": code, "verdict": "V", "reasons": ["because"]}))
sys.exit(code)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "a.cu").write_text("// one\n")
    (tmp_path / "model.py").write_text("# model\n")
    (tmp_path / "model_new.py").write_text("# new\n")
    return Workspace(tmp_path)


def counting(workspace: Workspace, code: int) -> steps.Step:
    return steps.Step("thing", (sys.executable, "-c", COMMAND, str(workspace.root / "runs"), str(code)))


def runs(workspace: Workspace) -> int:
    return len((workspace.root / "runs").read_text())


@pytest.mark.parametrize("code", [YES, NO])
def test_an_answered_step_is_not_run_again(workspace: Workspace, code: int) -> None:
    first = steps.run_step(workspace, counting(workspace, code), fresh=False, timeout=60)
    second = steps.run_step(workspace, counting(workspace, code), fresh=False, timeout=60)
    assert (first.exit_code, first.resumed) == (code, False)
    assert (second.exit_code, second.resumed) == (code, True)
    assert second.record == first.record
    assert runs(workspace) == 1
    steps.run_step(workspace, counting(workspace, code), fresh=True, timeout=60)
    assert runs(workspace) == 2


@pytest.mark.parametrize("changed", ["kernels/a.cu", "model.py", "model_new.py"])
def test_a_step_is_run_again_when_a_file_changed(workspace: Workspace, changed: str) -> None:
    steps.run_step(workspace, counting(workspace, YES), fresh=False, timeout=60)
    (workspace.root / changed).write_text("something else\n")
    assert not steps.run_step(workspace, counting(workspace, YES), fresh=False, timeout=60).resumed
    assert runs(workspace) == 2


def test_a_step_that_could_not_tell_is_run_again(workspace: Workspace) -> None:
    steps.run_step(workspace, counting(workspace, CANNOT_TELL), fresh=False, timeout=60)
    steps.run_step(workspace, counting(workspace, CANNOT_TELL), fresh=False, timeout=60)
    assert runs(workspace) == 2


def test_a_command_that_crashes_or_hangs_is_a_reason_not_an_exception(workspace: Workspace) -> None:
    crash = steps.Step("crash", (sys.executable, "-c", "print('the last words'); raise SystemExit(7)"))
    done = steps.run_step(workspace, crash, fresh=False, timeout=60)
    assert (done.exit_code, done.record) == (7, None)
    assert done.reason == "crash: the last words"
    hang = steps.Step("hang", (sys.executable, "-c", "import time; time.sleep(60)"))
    done = steps.run_step(workspace, hang, fresh=False, timeout=0.5)
    assert done.exit_code == CANNOT_TELL
    assert "stopped after" in done.reason


def test_an_old_record_is_not_taken_for_that_of_a_crash(workspace: Workspace) -> None:
    folder = workspace.build / "gallery"
    folder.mkdir(parents=True)
    (folder / "crash.json").write_text(json.dumps({"exit_code": 0, "verdict": "FASTER", "reasons": []}))
    crash = steps.Step("crash", (sys.executable, "-c", "raise SystemExit(3)"))
    assert steps.run_step(workspace, crash, fresh=False, timeout=60).record is None


def profiled(ratio: float | None, exit_code: int = YES) -> steps.Done:
    measured = None if ratio is None else {"value": ratio, "low": ratio, "high": ratio}
    results: dict[str, Any] = {
        "solution": {"summary": {"median": 2.0}, "limit_reached": 0.91},
        "baselines": [
            {"key": "eager", "official": False, "summary": {"median": 9.0}, "ratio": {"value": 0.25}},
            {"key": "compile", "official": True, "summary": {"median": 2.0 / (ratio or 1)}, "ratio": measured},
            {"key": "compile-tf32", "official": False, "summary": {"median": 4.0}, "ratio": {"value": 0.5}},
        ],
        "best_equal_precision": "compile-tf32",
        "verification": {"precision": {"class": "TF32/fp16", "max_abs_error": 1e-3}},
    }
    record = {"verdict": "FASTER", "exit_code": exit_code, "reasons": ["the target was missed"], "results": results}
    return steps.Done("profile", exit_code, record, "", False)


COMPILED = steps.Done("compile", YES, {"exit_code": 0}, "", False)


def test_row_of_a_profiled_workspace() -> None:
    row = summary.row_of("one", [COMPILED, profiled(0.25)])
    assert row["good"] and row["why"] == "" and not row["simulated"]
    assert (row["ms"], row["compile_ms"], row["limit"]) == (2.0, 8.0, 0.91)
    assert (row["speedup"], row["equal_precision"]) == (4.0, 2.0)
    assert (row["precision"], row["worst_error"]) == ("TF32/fp16", 1e-3)


def test_row_of_a_workspace_that_does_not_build_claims_nothing() -> None:
    failed = steps.Done("compile", NO, {"exit_code": 1, "reasons": ["a.cu:3: no"], "verdict": "FAILED"}, "", False)
    row = summary.row_of("one", [failed])
    assert not row["good"]
    assert row["why"] == "compile: a.cu:3: no"
    assert row["ms"] is None and row["speedup"] is None and row["precision"] is None


def test_row_of_a_missed_target_is_not_good_but_shows_its_times() -> None:
    row = summary.row_of("one", [COMPILED, profiled(0.98, exit_code=NO)])
    assert not row["good"]
    assert row["speedup"] == pytest.approx(1 / 0.98)
    assert row["why"] == "profile: the target was missed"


def test_geometric_mean_is_over_what_was_measured() -> None:
    assert summary.geometric_mean([2.0, None, 8.0]) == pytest.approx(4.0)
    assert summary.geometric_mean([None]) is None


def test_closing_and_markdown() -> None:
    rows = [summary.row_of("one", [COMPILED, profiled(0.5)]), summary.row_of("two", [COMPILED, profiled(0.125)])]
    assert "2 of 2" in summary.closing(rows)[0]
    assert "geometric mean over 2: 4.00 times" in summary.closing(rows)[1]
    lines = summary.markdown(rows).splitlines()
    assert len(lines) == 4
    assert all(line.count("|") == len(summary.COLUMNS) + 1 for line in lines)


@pytest.mark.parametrize("count", [0, 3])
def test_plot_is_well_formed_and_draws_every_measured_row(count: int) -> None:
    rows = [summary.row_of(f"w{i}<&", [COMPILED, profiled(0.5 / (i + 1))]) for i in range(count)]
    rows.append(summary.row_of("unmeasured", [steps.Done("compile", NO, None, "no", False)]))
    svg = plot.draw(rows, "a device & more")
    root = ElementTree.fromstring(svg)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text.startswith("w")] == [f"w{i}<&" for i in reversed(range(count))]
    assert ("nothing measured" in texts) == (count == 0)


def test_plot_says_which_rows_are_not_sure() -> None:
    rows = [summary.row_of("sure", [COMPILED, profiled(0.5)])]
    assert "UNSURE" not in plot.draw(rows, "a device") and 'fill-opacity="0.35"' not in plot.draw(rows, "a device")
    rows.append({**rows[0], "name": "other", "verdict": "UNSURE"})
    root = ElementTree.fromstring(plot.draw(rows, "a device"))
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "2.00" in texts and "2.00  UNSURE" in texts
    pale = [node.get("fill-opacity") for node in root.iter("{http://www.w3.org/2000/svg}rect")][2:]
    assert pale == ["1", "0.35"]


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(CannotTell, match="no workspace nowhere") as refusal:
        main(["nowhere", "--sim"])
    assert "softmax_rows" in str(refusal.value)


def test_two_gpus_measure_side_by_side_and_rows_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = [Gpu("H200", (9, 0), "GPU-a"), Gpu("H200", (9, 0), "GPU-b"), Gpu("H200", (9, 0), "GPU-c")]
    both = threading.Barrier(2, timeout=20)
    used: list[str] = []

    def judge(workspace: Workspace, _: argparse.Namespace, device: dict[str, str]) -> steps.Done:
        used.append(device["CUDA_VISIBLE_DEVICES"])
        both.wait()
        if workspace.root.name == "cumsum_rows":
            time.sleep(0.2)  # done after the next
        return profiled(0.5)

    monkeypatch.setattr(command, "visible_gpus", lambda: gpus)
    monkeypatch.setattr(command, "_ready", lambda workspace, asked: [COMPILED])
    monkeypatch.setattr(command, "_judge", judge)
    names = ["cumsum_rows", "layer_norm", "matmul_rect", "softmax_rows"]
    assert main([*names, "--gpus", "2", "--json", str(tmp_path / "all.json")]) == YES
    assert set(used) == {"GPU-a", "GPU-b"} and len(used) == 4
    written = json.loads((tmp_path / "all.json").read_text())
    assert [row["name"] for row in written["results"]["rows"]] == names
    assert list(written["results"]["steps"]) == names


def test_every_gallery_workspace_is_found() -> None:
    names = steps.gallery_names()
    assert {"matmul_square", "transformer_block", "conv_bias_act_pool"} <= set(names)


@pytest.mark.parametrize("option", ["--trials", "--budget", "--jobs", "--timeout"])
def test_a_number_that_cannot_be_is_refused_before_anything_is_compiled(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--sim", option, "0"])
    assert ended.value.code == 2
    assert f"{option}: 0 is not a " in capsys.readouterr().err


def test_without_a_gpu_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "utils.gallery", "softmax_rows"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={"PATH": "", "CUDA_VISIBLE_DEVICES": ""},
        timeout=120,
    )
    assert done.returncode == CANNOT_TELL
    assert "--sim" in done.stderr and "Traceback" not in done.stderr


def test_nothing_is_compiled_or_checked_beside_a_profiling_and_options_reach_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[steps.Step] = []

    def run_step(workspace: Workspace, step: steps.Step, **_: Any) -> steps.Done:
        ran.append(step)
        return steps.Done(step.name, YES, {"exit_code": YES, "verdict": "FASTER", "reasons": []}, "", False)

    monkeypatch.setattr("utils.gallery.__main__.run_step", run_step)
    monkeypatch.setattr("utils.gallery.__main__.visible_gpus", lambda: ["a GPU"])
    assert main(["cumsum_rows", "softmax_rows", "--trials", "2", "--budget", "1.5"]) == YES
    assert [step.name for step in ran[-2:]] == ["profile", "profile"]
    assert sorted(step.name for step in ran[:-2]) == ["check", "check", "compile", "compile"]
    assert all(step.command[-6:] == ("--trials", "2", "--baselines", "all", "--budget", "1.5") for step in ran[-2:])


def test_one_failure_never_stops_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def run_step(workspace: Workspace, step: steps.Step, **_: Any) -> steps.Done:
        name = workspace.root.name
        asked.append((name, step.name))
        if name == "cumsum_rows" and step.name == "compile":
            return steps.Done("compile", NO, None, "it does not build", False)
        record = {"exit_code": YES, "verdict": "PASS", "simulated": True, "reasons": [], "results": {}}
        return steps.Done(step.name, YES, record, "", False)

    monkeypatch.setattr("utils.gallery.__main__.run_step", run_step)
    target = tmp_path / "gallery.json"
    assert main(["cumsum_rows", "softmax_rows", "--sim", "--json", str(target)]) == NO
    assert ("cumsum_rows", "check") not in asked
    assert ("softmax_rows", "verify") in asked
    written = json.loads(target.read_text())
    assert [row["good"] for row in written["results"]["rows"]] == [False, True]
    assert written["simulated"] is True
