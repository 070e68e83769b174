"""The operators torch dispatched while the solution ran: they show compute however it was spelled, in C++ too."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.present.outcome import CannotTell
from utils.problem.solution import Solution, parse
from utils.rules.allowed_ops import ATEN, dispatched_base
from utils.rules.internals import INTERNALS
from utils.rules.python_compute import EARLY, HEAVY
from utils.rules.python_values import base
from utils.rules.rule import Violation, rule

DISPATCHED = rule(
    "dispatched-compute",
    "while forward runs, torch dispatches only operators that create and view tensors",
    "the operators recorded under forward, load_state_dict and the constructor, with the Python line that led there",
    "replace the operator by a kernel of your own",
)

# Namespaces whose operators are torch's or another library's, not the solution's.
_OTHERS = {
    "aten",
    "prims",
    "inductor",
    "quantized",
    "torchvision",
    "mkldnn",
    "onednn",
    "_c10d_functional",
    "xformers",
    "flash_attn",
}
# torch.tensor(..., device=...) is creation, but copies its data to the device on the way.
_CREATION_STEPS = {"_to_copy", "copy", "lift_fresh", "lift", "fill", "arange"}
_MAKERS = {"tensor", "as_tensor", "new_tensor", "asarray", "from_numpy", "scalar_tensor"}
# Weights are copied into place when they are loaded.
_LOADING = {"copy", "_to_copy", "set", "equal", "is_nonzero"}


def dispatched_violations(ops: Sequence[Mapping[str, Any]], solution: Solution, shared: set[str]) -> list[Violation]:
    """Breaches in the record of dispatched operators. `shared`: operators the problem's own constructor may use."""
    found = []
    for entry in ops:
        space, name = dispatched_base(str(entry.get("op", "")))
        phase = entry.get("phase", "forward")
        if space == "harness":
            sentence = "the record of torch's operators was switched off while the solution ran"
            found.append(Violation(INTERNALS.id, sentence, solution.path, None, str(entry["op"]), INTERNALS.mend))
            continue
        plain = base(name)
        if space not in _OTHERS or (space == "aten" and name in ATEN):
            continue
        path, line = _place(entry.get("python_stack") or [], solution)
        if phase == "forward":
            if plain in _CREATION_STEPS and _makes_tensor(path, line):
                continue
            rule_id, sentence, mend = DISPATCHED.id, f"torch ran {space}::{name} while forward ran", DISPATCHED.mend
        elif phase == "load_state_dict":
            if plain in _LOADING:
                continue
            rule_id, sentence, mend = EARLY.id, f"torch ran {space}::{name} while the weights were loaded", EARLY.mend
        else:
            if plain not in HEAVY or plain in shared:
                continue
            rule_id, sentence, mend = EARLY.id, f"torch ran {space}::{name} in the constructor", EARLY.mend
        count = int(entry.get("count", 1))
        times = f", {count} times" if count > 1 else ""
        found.append(Violation(rule_id, sentence + times, path or solution.path, line, f"{space}::{name}", mend))
    return found


def _place(stack: Sequence[Any], solution: Solution) -> tuple[Path | None, int | None]:
    """The innermost line of the solution's Python in a stack of "file:line" strings."""
    for said in reversed([str(part) for part in stack]):
        match = re.match(r"(.+):(\d+)$", said)
        if not match:
            continue
        path = Path(match.group(1))
        if path.name == solution.path.name:
            return solution.path, int(match.group(2))
        beside = solution.path.parent / path.name
        if beside.is_file():
            return beside, int(match.group(2))
    return None, None


def _makes_tensor(path: Path | None, line: int | None) -> bool:
    """Whether the statement on that line calls torch.tensor or one of its like."""
    if path is None or line is None:
        return False
    try:
        tree = parse(path)
    except CannotTell:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else ""
            )
            if name in _MAKERS:
                return True
    return False
