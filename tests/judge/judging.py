"""Helpers of the judge's tests: small problems and solutions written to a folder, and a verification of them."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from utils.judge.verify import Request, Verification, verify

HEAD = "import torch\nimport torch.nn as nn\n"

LINEAR = """
class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
    def forward(self, x):
        return torch.relu(self.lin(x))
def get_inputs():
    return [torch.randn(16, 32)]
def get_init_inputs():
    return [32]
"""

ADD = """
class Model(nn.Module):
    def forward(self, a, b):
        return a + 2 * b
def get_inputs():
    return [torch.randn(40, 64), torch.randn(40, 64)]
"""


def workspace(folder: Path, problem: str, solution: str) -> Path:
    """`folder` with model.py and model_new.py; the usual imports are put in front of both."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(HEAD + textwrap.dedent(problem))
    (folder / "model_new.py").write_text(HEAD + textwrap.dedent(solution))
    return folder


def judged(folder: Path, problem: str, solution: str, **options: Any) -> Verification:
    """A verification on the CPU, with the policy rules only warning: the tests' solutions are plain PyTorch."""
    options = {"device": "cpu", "rules": "relaxed", "trials": 2, "timeout": 20.0, "seed": 1, **options}
    return verify(Request(workspace=str(workspace(folder, problem, solution)), **options))


def new(forward: str, init: str = "") -> str:
    """A ModelNew for LINEAR or ADD with this body of forward."""
    return (
        textwrap.dedent(init)
        + "\nclass ModelNew(nn.Module):\n"
        + textwrap.indent(textwrap.dedent(forward).strip("\n"), "    ")
        + "\n"
    )


def kinds(done: Verification) -> set[str]:
    """Kinds of the findings that fail."""
    return {finding.kind for finding in done.findings.of("fail")}
