"""The command: exit codes, the JSON record, one sentence for what cannot be judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from judging import ADD, workspace

from utils.problem.workspace import ROOT

GOOD = "class ModelNew(nn.Module):\n    def forward(self, a, b):\n        return a + 2 * b\n"


def command(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the command with `folder` as the current one, as an agent in its workspace would."""
    arguments = [sys.executable, "-m", "utils.verification", "--device", "cpu", "--rules", "relaxed", "--trials", "2"]
    return subprocess.run(
        [*arguments, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_yes(tmp_path: Path) -> None:
    folder = workspace(tmp_path / "w", ADD, GOOD)
    (folder / "torch.py").write_text("raise SystemExit(0)\n")
    record = tmp_path / "record.json"
    done = command(folder, "--workspace", str(folder), "--json", str(record), "--seed", "5", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: ModelNew computes what Model computes in 6 calls" in done.stdout
    written = json.loads(record.read_text())
    assert written["schema"] == "workbench/verification/1"
    assert (written["verdict"], written["exit_code"], written["simulated"]) == ("PASS", 0, False)
    assert written["settings"]["seed"] == 5 and written["settings"]["atol"] == 1e-2
    calls = [call for trial in written["results"]["trials"] for call in trial["calls"]]
    assert len(calls) == 6 and all(call["passed"] for call in calls)
    assert calls[0]["outputs"][0]["path"] == "out" and calls[0]["outputs"][0]["count"] == 2560
    assert {"harness", "problem", "solution"} <= set(written["environment"]["digests"])
    assert any(op["op"].startswith("aten::add") for op in written["results"]["operators"])


def test_no(tmp_path: Path) -> None:
    folder = workspace(tmp_path, ADD, GOOD.replace("2 * b", "2.1 * b"))
    record = tmp_path / "record.json"
    done = command(folder, "--workspace", str(folder), "--json", str(record))
    assert done.returncode == 1
    assert "FAIL: trial 1 call 1: out:" in done.stdout and "worst at [" in done.stdout
    written = json.loads(record.read_text())
    assert written["verdict"] == "FAIL" and written["reasons"]
    assert float(written["results"]["close_miss"]["atol"]) > 1e-2


def test_cannot_tell(tmp_path: Path) -> None:
    for options, words in (
        (("--workspace", str(tmp_path / "none")), "is not a folder"),
        (("--no-sandbox", "--require-sandbox"), "contradict"),
        (("--workspace", str(tmp_path)), "there is no solution"),
        (("--atol", "nan"), "is not a tolerance"),
    ):
        done = command(tmp_path, *options)
        assert done.returncode == 2, options
        assert words in done.stderr and "Traceback" not in done.stderr, done.stderr
