"""What one check says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASS, WARN, FAIL, SKIP = "pass", "warn", "fail", "skip"


@dataclass(frozen=True)
class Finding:
    """The answer of one named check.

    status    pass; warn (works, but see the sentence); fail; skip (not tried, and why)
    line      the line of the file it is about, where there is one
    mend      what to write instead
    facts     numbers behind the sentence, for the JSON record
    """

    check: str
    status: str
    sentence: str
    line: int | None = None
    mend: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "status": self.status,
            "sentence": self.sentence,
            "line": self.line,
            "mend": self.mend,
            "facts": self.facts,
        }


# Every check of a problem file, in the order they are shown; a check that never came to be said is skipped by name.
PROBLEM_CHECKS = {
    "python": "the file is valid Python",
    "model-class": "a class named exactly Model that extends torch.nn.Module and has a forward",
    "get-inputs": "get_inputs() is there and returns a list",
    "get-init-inputs": "get_init_inputs() is there and returns a list",
    "cpu-tensors": "inputs are CPU tensors; the workbench moves them",
    "fixed-shapes": "shapes are the same at every call",
    "fresh-values": "every call of get_inputs() draws new values",
    "dtypes": "dtypes are explicit where precision matters",
    "side-effects": "importing the file and get_inputs() change nothing outside it",
    "memory": "the problem fits, estimated before anything is allocated",
    "constructs": "Model(*get_init_inputs()) works",
    "constructor-arguments": "every constructor argument is used",
    "runs": "Model(*get_init_inputs())(*get_inputs()) works on the CPU",
    "runs-gpu": "it works on the GPU, where there is one",
    "finite": "outputs hold no NaN or Inf",
    "repeatable": "the same call gives the same answer: no random numbers, no state kept",
    "inputs-unchanged": "forward leaves its inputs as they were",
    "uses-inputs": "every input matters to the output",
    "uses-weights": "every parameter matters to the output",
    "meaningful": "no trivial answer passes the tolerance",
    "acts": "every clamp, relu and softmax in the model acts on these inputs",
}
