"""Questions beyond get_inputs, put once everything else has passed: other layouts, other alignment, other values.

What a solution refuses in words is noted. What it gets silently wrong for the same values in another layout fails: it
is the same function of the same tensors. Values that get_inputs never draws (other signs and scales) only warn where
the answer differs; a solution that crashes on them, where Model answers, fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from utils.judge import reference as references
from utils.judge import structure
from utils.judge.comparing import Compared, Tolerance, compare_result
from utils.judge.failure import RunnerFailed
from utils.judge.session import Session
from utils.judge.shortage import is_shortage
from utils.judge.trials import Trials
from utils.judge.verdict import Findings
from utils.present.outcome import CannotTell

if TYPE_CHECKING:
    from utils.judge.handles import Outputs

_WORDS = {
    "scaled": "inputs of other sign and scale",
    "strided": "the same values in another memory layout (non-contiguous inputs)",
    "misaligned": "the same values one element off their usual alignment",
}
# The runner is given up, though nothing broke: it may be slow, or the memory short.
_NO_CRASH = ("timeout", "out_of_memory", "harness")


def run(trials: Trials, session: Session, findings: Findings, start: Callable[[], Session]) -> list[dict[str, Any]]:
    """The probes one after the other; each gives a record of what came of it.

    `start` makes another runner: a probe in which one is lost is put once more to a fresh one, since something outside
    may have ended the first.
    """
    records = []
    with contextlib.ExitStack() as stack:
        for name in ("scaled", "strided", "misaligned"):
            record = {"probe": name, "outcome": "not applicable"}
            records.append(record)
            if trials.random_differs:
                record["outcome"] = "not applicable: random numbers are compared as samples"
                continue
            values, shift = _variant(name, trials.last_inputs)
            if values is None:
                continue
            try:
                if not session.alive:
                    session = stack.enter_context(_revived(trials, start))
                try:
                    record["outcome"] = _one(name, trials, session, findings, values, shift)
                except RunnerFailed as failed:
                    if failed.alive or failed.kind in _NO_CRASH:
                        raise
                    session = stack.enter_context(_revived(trials, start))
                    record["outcome"] = _one(name, trials, session, findings, values, shift)
                    findings.warn(
                        name,
                        f"with {_WORDS[name]} the solution's process was lost once ({failed.sentence}), and a fresh "
                        "one answered: something outside ended it, or a fault that comes and goes",
                    )
            except RunnerFailed as failed:
                if failed.kind == "harness":
                    raise
                record["outcome"] = f"refused: {failed.sentence}"
                _failed(name, failed, findings)
    return records


def _failed(name: str, failed: RunnerFailed, findings: Findings) -> None:
    """What it means that a probe got no answer. Only words are a refusal; a lost process is a crash."""
    if failed.alive:
        findings.note(name, f"{_WORDS[name]} are refused: {failed.sentence}")
    elif name == "scaled" and failed.kind not in _NO_CRASH:
        # The same shapes, dtypes and layout: a caller may give them, and Model answers.
        findings.fail(failed.kind, f"{_WORDS[name]} crash the solution, twice: {failed.sentence}")
    else:
        findings.warn(
            name,
            f"{_WORDS[name]} crash the solution: {failed.sentence}; check for them, so that a caller sees a message "
            "instead",
        )


def _revived(trials: Trials, start: Callable[[], Session]) -> Session:
    """A fresh runner in the state of the last trial. Raises RunnerFailed when the solution fails on the way there."""
    assert trials.reference is not None
    session = start()
    try:
        session.ready()
        session.thrift, session.deadline = trials.session.thrift, trials.session.deadline
        session.construct(trials.reference.init_arguments, seed=1, train=trials.train)
        session.load(trials.reference.state())
    except BaseException:
        session.close()
        raise
    return session


def _one(name: str, trials: Trials, session: Session, findings: Findings, values: list[Any], shift: int) -> str:
    assert trials.reference is not None
    seed = trials.another_seed()
    inputs = session.put(values, shift=shift)
    outputs: Outputs | None = None
    try:
        args, kwargs = inputs.values()
        try:
            with references.full_precision():
                value = trials.reference.run(args, kwargs, seed=seed)
        except CannotTell as error:
            if is_shortage(error):
                return "not done: Model finds no memory for them"
            return "not applicable: Model refuses them"
        expected, tree = references.tensors(value), references.describe(value)
        if name == "scaled" and not all(bool(tensor.isfinite().all()) for tensor in expected):
            return "not applicable: Model's own answer is not finite there"
        if trials.outputs is None or structure.bare(trials.outputs.expected) != structure.bare(tree):
            return "not applicable: the result has another shape"
        outputs = trials.outputs if session is trials.session else session.expect(tree)
        outputs.expected = tree
        called = session.call(inputs, outputs, seed=seed, flush=session.device.type == "cuda")
        compared = compare_result(expected, outputs, called, _loosened(trials, expected, name), trials.default)
        if compared.passed:
            return "right"
        return _wrong(name, compared, findings)
    finally:
        if session.alive:
            inputs.release()
            if outputs is not None and outputs is not trials.outputs:
                outputs.release()


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
        wide = torch.zeros((*value.shape, 2), dtype=value.dtype, device=value.device)
        wide[..., 0] = value
        return wide[..., 0]
    order = list(range(value.ndim))[::-1]
    return value.permute(order).contiguous().permute(order)
