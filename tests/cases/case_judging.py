"""Helpers of the cases: a problem and a solution written to a folder, and a verification of them on the CPU."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from utils.judge.verify import Request, Verification, verify

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"


def write(folder: Path, problem: str, solution: str | None = None) -> Path:
    """A workspace. Without a solution, ModelNew is Model under its new name."""
    folder.mkdir(parents=True, exist_ok=True)
    problem = HEAD + textwrap.dedent(problem)
    if solution is None:
        solution = problem.split("def get_inputs")[0].replace("class Model(", "class ModelNew(")
    else:
        solution = HEAD + textwrap.dedent(solution)
    (folder / "model.py").write_text(problem)
    (folder / "model_new.py").write_text(solution)
    return folder


def judged(folder: Path, problem: str, solution: str | None = None, **options: Any) -> Verification:
    """A verification with the policy rules only warning: the cases' solutions are plain PyTorch."""
    options = {"device": "cpu", "rules": "relaxed", "trials": 1, "timeout": 30.0, "seed": 1, **options}
    return verify(Request(workspace=str(write(folder, problem, solution)), **options))


def told(done: Verification, level: str = "fail") -> str:
    """All sentences of one level, for looking for words in them."""
    return "\n".join(str(finding) for finding in done.findings.of(level))
