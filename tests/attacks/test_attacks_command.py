"""Attacks on the command itself: its terminal, its interpreter's settings, its caches, its working folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attack_corpus import PROBLEMS, SOLUTIONS

ROOT = Path(__file__).resolve().parents[2]
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _workspace(folder: Path, solution: str, problem: str = "linear") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(PROBLEMS / f"{problem}.py", folder / "model.py")
    shutil.copyfile(SOLUTIONS / f"{solution}.py", folder / "model_new.py")
    return folder


def _command(folder: Path, *options: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "utils.verification", "--workspace", str(folder), "--device", "cpu", "--trials", "1"]
    if "strict" not in options:
        argv += ["--rules", "relaxed"]
    argv += [option for option in options if option != "strict"]
    return subprocess.run(
        argv,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=300,
    )


@pytest.mark.parametrize(
    "solution, problem, encoding",
    [
        ("error_hostile_message", "linear", "utf-8"),
        ("error_lone_surrogates", "linear", "utf-8"),
        ("error_odd_keys", "pair", "ascii"),
    ],
)
def test_what_a_solution_says_reaches_the_terminal_as_plain_text(
    solution: str, problem: str, encoding: str, tmp_path: Path
) -> None:
    folder = _workspace(tmp_path / "w", solution, problem)
    done = _command(folder, "--json", str(tmp_path / "record.json"), PYTHONIOENCODING=encoding)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert not _CONTROL.search(done.stdout), _CONTROL.findall(done.stdout)
    assert "FAIL" in done.stdout and not re.search(r"^PASS", done.stdout, re.MULTILINE)
    assert len(done.stdout) < 100_000
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert record["verdict"] == "FAIL" and record["exit_code"] == 1


def test_optimised_bytecode_changes_no_verdict(tmp_path: Path) -> None:
    """CA7: PYTHONOPTIMIZE removes assert statements."""
    done = _command(_workspace(tmp_path / "w", "wrong_one_element"), PYTHONOPTIMIZE="2")
    assert done.returncode == 1 and "FAIL" in done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


def test_a_file_in_the_working_folder_does_not_become_part_of_the_judge(tmp_path: Path) -> None:
    """CA4: `python -m` puts the working folder first on the path while it looks for the command."""
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "utils", tree / "utils", ignore=shutil.ignore_patterns("__pycache__"))
    # Python itself imports a few modules (warnings among them) before the first line of a command can run; only
    # `python -P` helps there. Everything after that line must be the real thing.
    for name in ("torch", "rich", "json", "argparse", "socket", "struct", "random", "subprocess"):
        (tree / f"{name}.py").write_text(
            "import os\nos.write(1, b'SHADOWED ' + __name__.encode() + b'\\n')\nos._exit(0)\n"
        )
    done = _command(_workspace(tmp_path / "w", "wrong_one_element"), cwd=tree)
    assert "SHADOWED" not in done.stdout, done.stdout
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]


REWRITE = '''
import os
import torch
import torch.nn as nn

target = None
for name in os.listdir("/proc"):
    if name.isdecimal() and target is None:
        try:
            words = open(f"/proc/{name}/cmdline").read().split("\\0")
        except OSError:
            continue
        if "utils.verification" in words and "--workspace" in words:
            place = os.path.join(words[words.index("--workspace") + 1], "mod" + "el.py")
            if os.path.isfile(place) and "attack-own" in place:
                target = place
if target is not None:
    with open(target, "w") as file:
        file.write("""
import torch
import torch.nn as nn
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
    def forward(self, x):
        return torch.zeros_like(x)
def get_inputs():
    return [torch.randn(16, 32)]
def get_init_inputs():
    return [32]
""")
    print("rewrote the problem", flush=True)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.zeros_like(x)
'''


@pytest.mark.parametrize(
    "sandbox",
    [True, False],
)
def test_the_problem_that_was_asked_about_is_the_one_that_is_judged(sandbox: bool, tmp_path: Path) -> None:
    """H34: while it is imported, the solution rewrites model.py so that zeros are right.

    The sandbox hides the file; without it the judge must notice that the file is no longer what it was at the start.
    """
    folder = tmp_path / "attack-own"
    folder.mkdir()
    shutil.copyfile(PROBLEMS / "linear.py", folder / "model.py")
    (folder / "model_new.py").write_text(REWRITE)
    done = _command(folder, *(() if sandbox else ("--no-sandbox",)))
    assert done.returncode != 0, done.stdout[-3000:]
    if sandbox:
        assert done.returncode == 1 and "zeros_like(x)" not in (folder / "model.py").read_text()


def _staged_twice(folder: Path, between: Callable[[Path], None]) -> None:
    """Prepares a stage, does what the first run's solution may do to its cache, and prepares the next."""
    from utils.judge.staging import prepare
    from utils.problem.solution import find_solution
    from utils.problem.workspace import Workspace

    workspace = _workspace(folder / "w", "honest_words")
    (workspace / "model_new.py").write_text("from torch.utils.cpp_extension import load_inline\n")
    solution = find_solution(Workspace(workspace), None)
    native = folder / "native.so"
    native.write_bytes(b"")
    first = prepare(solution, None, native)
    between(first.cache)
    first.remove()
    second = prepare(solution, None, native)
    second.remove()


def test_a_link_left_in_the_cache_is_not_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache outlives the run and belongs to the solution; the judge, who may be root, must not follow it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outside = tmp_path / "outside"
    _staged_twice(tmp_path, lambda cache: (cache / ".writable").symlink_to(outside))
    assert not outside.exists()


def test_a_link_left_in_the_cache_is_not_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with torch_extensions, where locks of interrupted builds are removed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep/lock").touch()
    _staged_twice(tmp_path, lambda cache: (cache / "torch_extensions").symlink_to(outside))
    assert (outside / "deep/lock").exists()


HUGE = 10**400


@pytest.mark.parametrize(
    "op, changes",
    [
        ("call", {"ms": [HUGE]}),
        ("call", {"ms": [True]}),
        ("call", {"ms": [-1]}),
        ("call", {"copied": [1]}),
        ("call", {"out": {"k": "tensor", "dtype": ["float32"], "size": [1], "stride": [1]}}),
        ("call", {"out": {"k": "tensor", "dtype": "float32", "size": [HUGE], "stride": [1]}}),
        ("call", {"out": {"k": "tensor", "dtype": "float32", "size": [-1], "stride": [1]}}),
        ("call", {"out": {"k": "tuple", "v": [{"k": "none"}], "fields": ["class"], "name": "x"}}),
        ("call", {"out": {"k": "tuple", "v": {"0": 1}}}),
        ("call", {"out": {"k": "dict", "keys": [{"k": "tensor"}], "v": [{"k": "none"}]}}),
        ("call", {"out": {"k": "int", "v": "9" * 2000}}),
        ("call", {"out": {"k": "int", "v": "--1"}}),
        ("call", {"out": {"k": "int", "v": "-"}}),
        ("call", {"out": {"k": "int", "v": "\u0663"}}),
        ("call", {"out": {"k": "float", "v": "0x1p99999"}}),
        ("call", {"out": {"k": "complex", "v": ["0x1p0"]}}),
        ("call", {"out": {"k": "complex", "v": {"0": "0x1p0", "1": "0x1p0"}}}),
        ("call", {"out": {"k": "complex", "v": None}}),
        ("call", {"out": {"k": "size", "v": ["x"]}}),
        ("call", {"out": {"k": "dtype", "v": "__class__"}}),
        ("call", {"out": {"k": "tensor", "dtype": "float32", "size": [1], "stride": [1], "alias": {"a": 1}}}),
        ("call", {"out": {"k": "tensor", "dtype": "float32", "size": [1], "stride": [1], "device": None}}),
        ("call", {"flags": {"a": 1}}),
        ("call", {"launch_error": None}),
        ("call", {"ops": [{"op": "x", "count": HUGE, "phase": "forward", "python_stack": []}]}),
        ("error", {"error": {"where": "x", "type": "y", "message": "z", "line": "", "trace": "", "more": ""}}),
    ],
)
def test_no_answer_makes_the_judge_itself_fail(op: str, changes: dict[str, Any]) -> None:
    """H15: whatever a runner sends is either an answer or a ProtocolError, never another exception."""
    from utils.judge.protocol import ProtocolError, parse
    from utils.judge.replies import check_reply

    good = (
        {"out": {"k": "none"}, "ms": [0.1], "copied": [], "launch_error": "", "ops": [], "flags": {}}
        if op == "call"
        else {}
    )
    answer = parse(json.dumps({"ok": True, **good, **changes}).encode())
    with pytest.raises(ProtocolError):
        check_reply(op, answer)


def test_a_workspace_below_a_system_folder_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H24: model.py must be out of reach wherever the workspace lies, in /opt/project as well as at home."""
    from types import SimpleNamespace
    from typing import cast

    from utils.judge import sandbox
    from utils.judge.staging import Stage

    project = tmp_path / "opt/project"
    project.mkdir(parents=True)
    monkeypatch.setattr(sandbox, "_SYSTEM", (*sandbox._SYSTEM, str(tmp_path / "opt")))
    stage = cast(Stage, SimpleNamespace(root=tmp_path / "stage", cache=tmp_path / "cache", sources=(project,)))
    assert str(project) in sandbox.hidden(stage, sandbox.Policy(hide=(project,)))


def test_a_runner_that_is_gone_is_not_accused_of_sending_bytes() -> None:
    """C24: a process that died between two questions has ended; it did not interfere with the protocol."""
    import socket

    from utils.judge.protocol import Channel, Closed

    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    theirs.close()
    try:
        assert channel.idle()
    except Closed:
        pass
    finally:
        channel.close()
