"""The corpus of attacks: reads what each file expects, and runs verifications of many of them at a time.

A file of solutions/ is a whole model_new.py. Its docstring says what a program needs to know as well as what a person
wants to:

    H16: SystemExit(0) from forward.

    Method: ...                                     how it tries to pass
    Problem: linear                                 a file of problems/
    Expect: FAIL exit ("tried to end the process")  the verdict, the kinds of finding of which one must be among the
                                                    failures, and words that one of them must contain
    Output: could open: []                          what it must have printed
    Options: {"timeout": 5}                         changes to the request, JSON
    Files: {"torch.py": "..."}                      other files of the workspace, JSON

Everything runs in worker processes that import torch once; only the runner is started anew for each attack.
"""

from __future__ import annotations

import ast
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
import time
import traceback
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SOLUTIONS, PROBLEMS, KERNELS = HERE / "solutions", HERE / "problems", HERE / "kernels"
_EXPECT = re.compile(r'^(PASS|FAIL|CANNOT TELL)(?: +([\w|]+))?(?: +\("(.+)"\))?$')
# About memory of the host: on a GPU these solutions ask something else.
HOST_ONLY = (
    "numpy",
    "search_arena",
    "structure_meta",
    "structure_quantised",
    "phase_by_recording",
    "honest_memo_of_everything",
)
# They load the whole machine; a neighbour would be judged slow.
ALONE = ("memory_hog", "gpu_truncated", "gpu_honest_many", "fork_", "gpu_hanging")
_BUILD_SECONDS = 600
_FIELDS = ("Method", "Problem", "Expect", "Output", "Options", "Files")
# Plain PyTorch has no kernels of its own: the policy rules only warn unless an attack is about them.
_DEFAULTS: dict[str, Any] = {"device": "cpu", "rules": "relaxed", "trials": 2, "timeout": 30.0, "seed": 1}


@dataclass(frozen=True)
class Attack:
    """One solution and what the judge must say to it. `kinds` is empty when any kind will do."""

    name: str
    entry: str
    title: str
    method: str
    problem: str
    verdict: str
    kinds: frozenset[str]
    phrase: str
    output: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return SOLUTIONS / f"{self.name}.py"


def load(path: Path) -> Attack:
    """The attack a file describes. Raises ValueError when its docstring does not say what it must."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    title, _, rest = text.partition("\n")
    entry, colon, words = title.partition(": ")
    entry, title = (entry, words) if colon else ("", title)
    found: dict[str, str] = {}
    current = ""
    for line in rest.splitlines():
        name, separator, value = line.partition(":")
        if separator and name in _FIELDS:
            current, found[name] = name, value.strip()
        elif current and line.strip():
            found[current] += " " + line.strip()
    match = _EXPECT.match(found.get("Expect", ""))
    if not (title and match and "Method" in found and "Problem" in found):
        raise ValueError(f"{path.name}: its docstring lacks a title, Method, Problem or a well-formed Expect")
    kinds = frozenset((match[2] or "").split("|")) - {""}
    return Attack(
        path.stem,
        entry,
        title,
        found["Method"],
        found["Problem"],
        verdict=match[1],
        kinds=kinds,
        phrase=match[3] or "",
        output=found.get("Output", ""),
        options=json.loads(found.get("Options", "{}")),
        files=json.loads(found.get("Files", "{}")),
    )


def corpus() -> list[Attack]:
    """Every attack that needs no kernels of its own, by name."""
    return [load(path) for path in sorted(SOLUTIONS.glob("*.py")) if not path.name.startswith("gpu_")]


def gpu_corpus() -> list[Attack]:
    """Every attack that needs a GPU; they share the extension that `build_gpu` builds."""
    return [load(path) for path in sorted(SOLUTIONS.glob("gpu_*.py"))]


def for_gpu(attacks: Iterable[Attack]) -> list[Attack]:
    """Those that ask the same on a GPU's tensors."""
    return [attack for attack in attacks if not any(word in attack.name for word in HOST_ONLY)]


def build_gpu(folder: Path, architectures: str = "") -> str:
    """Makes `folder` a workspace with the faulty kernels, built for `architectures` (the visible GPU's by default).

    Returns what the build said, empty when it went well.
    """
    shutil.copytree(KERNELS, folder / "kernels")
    shutil.copyfile(PROBLEMS / "twice.py", folder / "model.py")
    shutil.copyfile(SOLUTIONS / "gpu_honest.py", folder / "model_new.py")
    variables = {**os.environ, **({"TORCH_CUDA_ARCH_LIST": architectures} if architectures else {})}
    script = HERE.parents[1] / "utils/compile.sh"
    try:
        done = subprocess.run(
            ["bash", str(script), "--workspace", str(folder)],
            capture_output=True,
            text=True,
            env=variables,
            timeout=_BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"the build took more than {_BUILD_SECONDS} s"
    return "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@dataclass
class Outcome:
    """What the judge made of it. `verdict` is PASS, FAIL, CANNOT TELL, or DEFECT where the judge itself failed."""

    verdict: str
    reasons: list[str]
    findings: list[dict[str, Any]] = field(default_factory=list)
    record: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    seconds: float = 0.0

    def kinds(self, level: str = "fail") -> set[str]:
        return {finding["kind"] for finding in self.findings if finding["level"] == level}

    def sentences(self, level: str = "fail") -> list[str]:
        return [finding["sentence"] for finding in self.findings if finding["level"] == level]


def missed(attack: Attack, outcome: Outcome) -> str:
    """Why the outcome is not the expected one; empty when it is."""
    told = f"{outcome.verdict}: " + " | ".join(outcome.reasons)
    if outcome.verdict != attack.verdict:
        return f"{attack.name} should have been {attack.verdict} but was {told}"
    if attack.output not in outcome.output:
        return f"{attack.name} should have printed {attack.output!r} but printed {outcome.output[:500]!r}"
    level = "fail" if attack.verdict == "FAIL" else None
    relevant = [item for item in outcome.findings if level is None or item["level"] == level]
    if attack.kinds and not any(item["kind"] in attack.kinds for item in relevant):
        return f"{attack.name} gave no finding of kind {' or '.join(sorted(attack.kinds))}: {told}"
    words = [
        item["sentence"] for item in relevant if not attack.kinds or item["kind"] in attack.kinds
    ] or outcome.reasons
    if attack.phrase and not any(attack.phrase in text for text in words):
        return f"{attack.name}: no reason says {attack.phrase!r}: {' | '.join(words)}"
    return ""


def run(attack: Attack, changes: dict[str, Any] | None = None, built: str | None = None) -> Outcome:
    """One verification in this process. `built`: a workspace with a built extension to start from."""
    from utils.judge import report, session
    from utils.judge.verify import Request, verify
    from utils.present.outcome import Outcome as Ended

    options = {**_DEFAULTS, **attack.options, **(changes or {})}
    if options["device"] != "cpu":  # the first touch of a GPU that several verifications share takes seconds
        options["timeout"] += 12.0
    session._IMPORT_TIMEOUT = options.pop("import_timeout", 600.0)
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    try:
        if built is not None:
            shutil.copytree(built, folder, dirs_exist_ok=True)
        shutil.copyfile(PROBLEMS / f"{attack.problem}.py", folder / "model.py")
        shutil.copyfile(attack.path, folder / "model_new.py")
        for name, text in attack.files.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        request = Request(workspace=str(folder), **options)
        done = verify(request)
        made = report.envelope(request, done)
        outcome = Outcome(done.verdict, made["reasons"], made["results"]["findings"], made, done.output)
        changed = [path.name for path, content in before.items() if not path.is_file() or path.read_bytes() != content]
        if changed:
            outcome.verdict, outcome.reasons = "DEFECT", [f"the attack changed {', '.join(changed)} of its workspace"]
    except Ended as ended:
        outcome = Outcome("FAIL" if ended.code == 1 else "CANNOT TELL", [str(ended)])
    except Exception:
        outcome = Outcome("DEFECT", [traceback.format_exc(limit=-3)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome.seconds = time.monotonic() - begun
    return outcome


def _prepare(cache: str) -> None:
    """In a new worker: caches of its own, so that no run finds anything of another; torch imported ahead."""
    from utils.native import library

    os.environ["KERNEL_WORKBENCH_NATIVE"] = str(library.path())
    os.environ["XDG_CACHE_HOME"] = cache
    import torch

    torch.set_num_threads(1)
    import utils.judge.probes
    import utils.judge.study
    import utils.judge.trials
    import utils.rules  # noqa: F401


class Pool:
    """Worker processes that judge; `submit` returns a future of an Outcome."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._cache = tempfile.mkdtemp(prefix="attack-caches-")
        self._executor = self._made()

    def _made(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self._workers, mp_context=context, initializer=_prepare, initargs=(self._cache,))

    def submit(
        self, attack: Attack, changes: dict[str, Any] | None = None, built: str | None = None
    ) -> Future[Outcome]:
        try:
            return self._executor.submit(run, attack, changes, built)
        except BrokenProcessPool:
            # A worker died, and its pool with it.
            self._executor = self._made()
            return self._executor.submit(run, attack, changes, built)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)
        shutil.rmtree(self._cache, ignore_errors=True)
