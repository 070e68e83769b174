"""Words of strangers on the terminal and in the record: every character is seen, none is obeyed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from utils.judge import failure
from utils.judge.bootstrap import _clear_locks
from utils.judge.verdict import Findings
from utils.present import record
from utils.present.visible import visible
from utils.problem.workspace import ROOT


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größer ≤ 1e-2 μs\n\tnext", "größer ≤ 1e-2 μs\n\tnext"),
        ("\x1b[2J\x9b1m", "\\x1b[2J\\x9b1m"),
        ("a\rPASS", "a\\rPASS"),
        ("\ud800", "\\ud800"),
        ("\u202egnp", "\\u202egnp"),
        ("a\u2028PASS", "a\\u2028PASS"),
    ],
)
def test_what_does_not_print_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_line_in_any_encoding_ends_without_a_traceback() -> None:
    script = "from utils.present import console\n"
    script += "console.say('\\x1b[31m\\ud800 größer'); console.table('t', ['c'], [['\\x1b']])"
    for encoding in ("ascii", "utf-8", "latin-1"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert b"\x1b" not in done.stdout and b"\\x1b[31m\\ud800" in done.stdout


def test_a_record_with_halves_of_surrogate_pairs_is_strict_json(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    record.write(path, {"reasons": ["\ud800 odd"], "\udfff": 1, "nan": float("nan")})
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == {"reasons": ["\\ud800 odd"], "\\udfff": 1, "nan": "nan"}
    assert "\\ud800" not in text.replace("\\\\ud800", "")


def test_names_of_classes_and_findings_cannot_look_like_lines_of_ours() -> None:
    error = {"type": "E\nPASS: all\x1b[2J", "message": "a\nb", "line": "x\n", "trace": "", "where": "forward"}
    sentence = failure.raised("call", error).sentence
    assert "\n" not in sentence and "\x1b" not in sentence and "E PASS: all\\x1b[2J" in sentence
    findings = Findings()
    findings.fail("values", "one\nPASS: two")
    assert findings.all[0].sentence == "one PASS: two"


def test_stale_locks_are_removed_through_no_link(tmp_path: Path) -> None:
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    for folder in (cache / "honest", outside / "deep"):
        folder.mkdir(parents=True)
        (folder / "lock").touch()
    (cache / "link").symlink_to(outside / "deep")
    (cache / "file").touch()
    _clear_locks(str(cache))
    assert not (cache / "honest/lock").exists() and (outside / "deep/lock").exists()
    (tmp_path / "whole").symlink_to(outside)
    _clear_locks(str(tmp_path / "whole"))
    _clear_locks(str(tmp_path / "missing"))
    _clear_locks(None)
    assert (outside / "deep/lock").exists()
