"""What the runner can reach in the sandbox of this machine, and what it must still be able to use."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from judging import ADD, LINEAR, judged, kinds, new, workspace

from utils.judge import processes
from utils.problem.workspace import ROOT

_LOOK = """
import os
def tried(path, mode):
    try:
        with open(path, mode) as file:
            return file.read(1) is not None if "r" in mode else True
    except OSError:
        return False
print("COMM", tried("/proc/self/comm", "r+"))
print("DEVICES", tried("/dev/null", "w"), tried("/dev/urandom", "rb"), tried("/dev/shm/x", "w"))
print("TERMINALS", os.listdir("/dev/pts") if os.path.isdir("/dev/pts") else [])
print("RUN", os.listdir("/run") if os.path.isdir("/run") else [])
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + 2 * b
"""


def test_terminals_and_services_are_hidden_and_devices_work(tmp_path: Path) -> None:
    done = judged(tmp_path, ADD, _LOOK)
    assert done.passed, done.reasons
    # cuInit fails with error 304 where /proc cannot be written to.
    assert "COMM True" in done.output and "DEVICES True True True" in done.output
    if "private file system" in done.sandbox["layers"]:
        assert "TERMINALS []" in done.output
        kept = {"nvidia", "nvidia-persistenced", "opengl-driver", "current-system", "booted-system", "wrappers"}
        listed = done.output.split("RUN ")[1].splitlines()[0]
        assert set(listed.strip("[]").replace("'", "").replace(",", " ").split()) <= kept


_SIGNALS = """
import os, signal
struck = []
for pid in (os.getppid(), BYSTANDER):
    try:
        os.kill(pid, 0)
        struck.append(pid)
    except OSError:
        pass
print("STRUCK", struck)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + 2 * b
"""


def test_a_runner_of_the_judges_own_user_signals_nobody_or_it_is_said(tmp_path: Path) -> None:
    """Without root the runner has the person's own user id: the kernel would let it signal the judge and the shell.

    A namespace with one user in it has the same effect.
    """
    alone = ["unshare", "--user", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], capture_output=True).returncode:
        pytest.skip("no user namespace here")
    with subprocess.Popen(["sleep", "300"]) as bystander:
        try:
            folder = workspace(tmp_path / "w", ADD, _SIGNALS.replace("BYSTANDER", str(bystander.pid)))
            argv = ["-m", "utils.verification", "--workspace", str(folder), "--device", "cpu", "--rules", "relaxed"]
            done = subprocess.run(
                [*alone, sys.executable, *argv, "--trials", "1", "--verbose"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode in (0, 1), done.stdout + done.stderr
            assert "STRUCK []" in done.stdout or "without protection from signals" in done.stdout, done.stdout
        finally:
            bystander.kill()


_CRASH = """
def forward(self, x):
    import signal
    if CONDITION:
        signal.raise_signal(signal.SIGSEGV)
    return torch.relu(self.lin(x))
"""
_INIT = """
def __init__(self, n):
    super().__init__()
    self.lin = nn.Linear(n, n)
"""


@pytest.mark.parametrize(
    ("condition", "verdict", "words"),
    [
        ("x.abs().max() > 8", "FAIL", "inputs of other sign and scale crash the solution, twice"),
        ("not x.is_contiguous()", "PASS", "(non-contiguous inputs) crash the solution"),
        ("x.data_ptr() % 16", "PASS", "one element off their usual alignment crash the solution"),
    ],
)
def test_a_crash_in_a_probe_is_no_silence(condition: str, verdict: str, words: str, tmp_path: Path) -> None:
    done = judged(tmp_path, LINEAR, new(_INIT + _CRASH.replace("CONDITION", condition)))
    told = [str(finding) for finding in done.findings.all]
    assert done.verdict == verdict and any(words in sentence for sentence in told), told
    assert kinds(done) <= {"crash"}


def test_a_runner_ended_from_outside_during_a_probe_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from utils.judge import probes

    asked = probes._one
    ended = []

    def one(name, trials, session, *rest):  # type: ignore[no-untyped-def]
        if not ended:
            ended.append(session.process.pid)
            os.kill(session.process.pid, signal.SIGKILL)
            time.sleep(0.2)
        return asked(name, trials, session, *rest)

    monkeypatch.setattr(probes, "_one", one)
    done = judged(tmp_path, LINEAR, new(_INIT + _CRASH.replace("CONDITION", "False")))
    assert done.passed, done.reasons
    assert [record["outcome"] for record in done.probes] == ["right", "right", "right"]
    warned = [str(finding) for finding in done.findings.of("warn")]
    assert any("was lost once" in sentence and "SIGKILL" in sentence for sentence in warned), warned
    assert not any("interfered" in sentence for sentence in warned)


def test_a_problem_that_changes_meanwhile_is_told_and_the_one_that_was_read_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from utils.judge import untouched

    monkeypatch.setattr(untouched, "harness_digest", iter(["before", "after"]).__next__)
    done = judged(tmp_path / "w", LINEAR, new(_INIT + _CRASH.replace("CONDITION", "False")))
    if {"private file system", "file access by Landlock"} & set(done.sandbox["layers"]):
        assert done.passed and "changed" in {finding.kind for finding in done.findings.of("warn")}


def test_shared_pages_count_once() -> None:
    script = """
    import os, sys, time
    block = bytearray(os.urandom(1 << 20)) * 200
    for _ in range(3):
        if os.fork() == 0:
            time.sleep(60)
    print("ready", flush=True)
    time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        try:
            assert parent.stdout is not None
            parent.stdout.readline()
            family = processes.descendants(parent.pid)
            assert len(family) == 4
            assert sum(map(processes.resident, family)) > 700 << 20
            assert sum(map(processes.proportional, family)) < 350 << 20
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    assert processes.proportional(parent.pid) == 0


def test_limits_of_control_groups_are_found(tmp_path: Path) -> None:
    groups = tmp_path / "groups"
    groups.write_text("4:memory:/a/b\n3:cpu:/a\n0::/c/d\n")
    for name, text in {
        "memory/a/memory.limit_in_bytes": "5000",
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "c/memory.max": "7000",
        "c/d/memory.max": "max",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert sorted(processes.control_group_limits(tmp_path, groups)) == [5000, 7000, 9223372036854771712]
    assert processes.control_group_limits(tmp_path / "none", tmp_path / "none") == []
