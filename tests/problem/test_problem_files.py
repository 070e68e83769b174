"""Every problem file of the corpus against the verdicts its first line states, check by check, with the line.

`# expect: runs=fail:8 acts=warn` names the checks that do not pass; all others must. Where one fails, later ones may be
skipped. A file without that line is right in every respect.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import torch

from utils.problem.checks import check_problem

FILES = Path(__file__).parent / "files"
CORPUS = sorted([*(FILES / "wrong").glob("*.py"), *(FILES / "kernelbench_like").glob("*.py")])


def expected(path: Path) -> dict[str, tuple[str, int | None]]:
    first = path.read_text().splitlines()[0]
    found = {}
    for part in first.removeprefix("# expect:").split() if first.startswith("# expect:") else []:
        check, status, line = re.fullmatch(r"([\w-]+)=(\w+)(?::(\d+))?", part).groups()
        found[check] = (status, int(line) if line else None)
    return found


@pytest.mark.parametrize("path", CORPUS, ids=[f"{p.parent.name}/{p.stem}" for p in CORPUS])
def test_verdict_and_line(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    random.seed(1)
    wanted = expected(path)
    findings = {f.check: f for f in check_problem(path, seconds=60)}
    got = {name: (f.status, f.line) for name, f in findings.items() if f.status in {"warn", "fail"}}
    assert got == wanted, {name: findings[name].sentence for name in {*got, *wanted}}
    failed = any(status == "fail" for status, _ in wanted.values())
    for name, finding in findings.items():
        if finding.status == "skip" and not failed:
            assert name == "runs-gpu" or finding.sentence.startswith("not tried: no gradient"), finding
        if finding.status in {"warn", "fail"}:
            assert finding.sentence and "Traceback" not in finding.sentence


def test_there_are_enough_files_and_each_check_is_broken_somewhere():
    assert len(CORPUS) >= 90
    assert len(list((FILES / "kernelbench_like").glob("*.py"))) >= 20
    broken = {check for path in CORPUS for check in expected(path)}
    untested = {"runs-gpu"}  # needs a GPU
    from utils.problem.checks.finding import PROBLEM_CHECKS

    assert broken == set(PROBLEM_CHECKS) - untested


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("relu_of_uniform", "torch.randn"),
        ("hardtanh_never_reached", "torch.randn"),
        ("dead_relu", "torch.randn"),
        ("uniform_attention", "torch.randn"),
        ("relu_then_leaky_relu", "structural"),
    ],
)
def test_what_never_acts_is_told_how_to_act(name, cure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(2)
    findings = {f.check: f for f in check_problem(FILES / "wrong" / f"{name}.py")}
    assert cure in findings["acts"].mend


def test_a_structurally_constant_problem_is_offered_no_false_cure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mean_of_group_norm", "own_mean_subtracted"):
        findings = {f.check: f for f in check_problem(FILES / "wrong" / f"{name}.py")}
        assert "then no trivial answer" not in findings["meaningful"].mend, findings["meaningful"]


def test_flags_and_generators_are_as_before(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = (torch.get_default_dtype(), torch.backends.cudnn.benchmark, torch.manual_seed)
    check_problem(FILES / "wrong" / "default_dtype_changed.py")
    check_problem(FILES / "wrong" / "flag_at_import.py")
    assert before == (torch.get_default_dtype(), torch.backends.cudnn.benchmark, torch.manual_seed)


def test_nothing_large_is_allocated_to_check_a_large_problem(tmp_path, monkeypatch):
    import resource

    monkeypatch.chdir(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    findings = {f.check: f for f in check_problem(FILES / "wrong" / "needs_100_gigabytes.py")}
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 4 << 30
    assert findings["memory"].facts["inputs"] == 400000 * 65536 * 4
    assert "rows of the first axis" in findings["runs"].sentence
