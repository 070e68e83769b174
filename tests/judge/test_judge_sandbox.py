"""The sandbox where little of it can be had: everything still works, says what is missing, and keeps what it can."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from judging import ADD, workspace

from utils.judge.processes import descendants
from utils.judge.sandbox import _unused_uid
from utils.problem.workspace import ROOT

# As in a container without privileges: root by name, but no namespace of any kind may be made.
_BARE = (
    'for kind in user mnt net ipc uts; do echo 0 > /proc/sys/user/max_${kind}_namespaces || exit 99; done; exec "$@"'
)
_SPY = """
import os, socket
seen = []
for path in (PROBLEM, JUDGE_MEMORY.format(os.getppid())):
    try:
        open(path, "rb").read(1)
        seen.append("read " + path)
    except OSError:
        pass
for path in (os.path.dirname(PROBLEM) + "/new", __file__):
    try:
        open(path, "a").close()
        seen.append("wrote " + path)
    except OSError:
        pass
print("SEEN", seen)
class ModelNew(nn.Module):
    def forward(self, a, b):
        return a + 2 * b
"""


def bare(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as in a container without privileges. Skips where not even that can be arranged."""
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "bash", "-c", _BARE, "_", *command],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode == 99 or "unshare" in done.stderr.split("\n")[0]:
        pytest.skip(f"no user namespace here: {done.stderr.strip()[:200]}")
    return done


def test_without_privileges_it_works_says_so_and_still_hides_what_it_can(tmp_path: Path) -> None:
    spy = _SPY.replace("PROBLEM", repr(str(tmp_path) + "/" + "model") + ' + ".py"').replace(
        "JUDGE_MEMORY", repr("/proc/{}/mem")
    )
    folder = workspace(tmp_path, ADD, spy)
    verification = [sys.executable, "-m", "utils.verification", "--workspace", str(folder), "--device", "cpu"]
    done = bare(*verification, "--rules", "relaxed", "--trials", "1", "--verbose")
    assert "warning: sandbox without private file system" in done.stdout, done.stdout + done.stderr
    assert "PASS" in done.stdout or "FAIL" in done.stdout
    if "file access by Landlock" in done.stdout.split("sandbox:")[-1].splitlines()[0]:
        assert "SEEN []" in done.stdout, done.stdout
    refused = bare(*verification, "--require-sandbox")
    assert refused.returncode == 2 and "--require-sandbox: sandbox without" in refused.stderr


def test_the_runner_gets_a_user_that_nobody_has() -> None:
    uid = _unused_uid()
    assert uid is None or uid > 1000
    if uid is not None:
        import pwd

        with pytest.raises(KeyError):
            pwd.getpwuid(uid)


def test_descendants_are_found_through_their_parents() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"], start_new_session=True) as shell:
        try:
            for _ in range(500):
                found = descendants(shell.pid)
                if len(found) == 2:
                    break
            assert found[0] == shell.pid and len(found) == 2
        finally:
            os.killpg(shell.pid, 9)
