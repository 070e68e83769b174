"""Questions beyond get_inputs, put once everything else has passed: other layouts, other alignment, other values.

What a solution refuses in words is noted. What it gets silently wrong for the same values in another layout fails: it
is the same function of the same tensors. Values that get_inputs never draws (other signs and scales) only warn.
"""

from __future__ import annotations

from typing import Any

import torch

from utils.judge import reference as references
from utils.judge import structure
from utils.judge.comparing import Compared, Tolerance, compare_result
from utils.judge.failure import RunnerFailed
from utils.judge.session import Session
from utils.judge.trials import Trials
from utils.judge.verdict import Findings
from utils.present.outcome import CannotTell

_WORDS = {
    "scaled": "inputs of other sign and scale",
    "strided": "the same values in another memory layout (non-contiguous inputs)",
    "misaligned": "the same values one element off their usual alignment",
}


def run(trials: Trials, session: Session, findings: Findings) -> list[dict[str, Any]]:
    """The probes one after the other; each gives a record of what came of it."""
    records = []
    for name in ("scaled", "strided", "misaligned"):
        record = {"probe": name, "outcome": "not applicable"}
        records.append(record)
        if not session.alive:
            record["outcome"] = "not done: the runner was lost"
            continue
        if trials.random_differs:
            record["outcome"] = "not applicable: random numbers are compared as samples"
            continue
        values, shift = _variant(name, trials.last_inputs)
        if values is None:
            continue
        try:
            record["outcome"] = _one(name, trials, session, findings, values, shift)
        except RunnerFailed as failed:
            record["outcome"] = f"refused: {failed.sentence}"
            if failed.alive:
                findings.note(name, f"{_WORDS[name]} are refused: {failed.sentence}")
            else:
                findings.warn(
                    name,
                    f"{_WORDS[name]} crash the solution: {failed.sentence}; check for them, so that a caller "
                    "sees a message instead",
                )
    return records


def _one(name: str, trials: Trials, session: Session, findings: Findings, values: list[Any], shift: int) -> str:
    assert trials.reference is not None
    inputs = session.put(values, shift=shift)
    try:
        args, kwargs = inputs.values()
        try:
            with references.full_precision():
                value = trials.reference.run(args, kwargs, seed=1)
        except CannotTell:
            return "not applicable: Model refuses them"
        expected, tree = references.tensors(value), references.describe(value)
        if name == "scaled" and not all(bool(tensor.isfinite().all()) for tensor in expected):
            return "not applicable: Model's own answer is not finite there"
        if trials.outputs is None or structure.bare(trials.outputs.expected) != structure.bare(tree):
            return "not applicable: the result has another shape"
        trials.outputs.expected = tree
        called = session.call(inputs, trials.outputs, seed=1, flush=False)
        compared = compare_result(expected, trials.outputs, called, _loosened(trials, expected, name), trials.default)
        if compared.passed:
            return "right"
        return _wrong(name, compared, findings)
    finally:
        if session.alive:
            inputs.release()


def _wrong(name: str, compared: Compared, findings: Findings) -> str:
    sentence = compared.sentences()[0]
    if name == "scaled":
        findings.warn(name, f"for {_WORDS[name]}, which get_inputs never draws, ModelNew is not Model: {sentence}")
    else:
        hint = {
            "strided": "read the strides, call .contiguous(), or refuse with TORCH_CHECK(x.is_contiguous())",
            "misaligned": "vector loads need a check of the address",
        }[name]
        findings.fail(name, f"for {_WORDS[name]} ModelNew silently gives another answer: {sentence}; {hint}")
    return f"wrong: {sentence}"


def _loosened(trials: Trials, expected: list[torch.Tensor], name: str) -> dict[str, Tolerance]:
    """The tolerances of the trials; with other magnitudes a tightened one means nothing."""
    return {} if name == "scaled" else dict(trials.tolerances)


def _variant(name: str, values: list[Any]) -> tuple[list[Any] | None, int]:
    """The inputs changed as the probe wants, and by how many bytes to move them; None where it changes nothing."""
    changed = False
    width = 1

    def vary(value: Any) -> Any:
        nonlocal changed, width
        if isinstance(value, torch.Tensor):
            made = _scaled(value) if name == "scaled" else _strided(value) if name == "strided" else value
            changed |= made is not value or (name == "misaligned" and value.numel() > 0)
            width = max(width, value.itemsize)
            return made
        if isinstance(value, list):
            return [vary(item) for item in value]
        if type(value) is tuple:
            return tuple(vary(item) for item in value)
        if isinstance(value, dict):
            return {key: vary(item) for key, item in value.items()}
        return value

    made = [vary(value) for value in values]
    return (made if changed else None), (width if name == "misaligned" else 0)


def _scaled(value: torch.Tensor) -> torch.Tensor:
    return value * -3.0 if value.is_floating_point() else value


def _strided(value: torch.Tensor) -> torch.Tensor:
    """The same values, dimensions laid out in the opposite order, or every second element of a vector twice as long."""
    if value.numel() < 2 or not value.is_contiguous():
        return value
    if sum(length > 1 for length in value.shape) < 2:
        wide = torch.zeros((*value.shape, 2), dtype=value.dtype)
        wide[..., 0] = value
        return wide[..., 0]
    order = list(range(value.ndim))[::-1]
    return value.permute(order).contiguous().permute(order)
