"""Is there anything to get wrong? Trivial answers held against the reference at the tolerance of verification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from utils.problem.checks.estimate import tensors_in

ATOL = 1e-2  # and rtol
STRICT = 1e-4
# A probe passes when this share of elements does; a few stray elements do not make a test meaningful.
MOST = 0.995
_PARTLY = 0.8


@dataclass(frozen=True)
class Probe:
    """One trivial answer: the share of elements that pass at the default tolerance, and at 1e-4."""

    name: str
    share: float
    strict: float

    @property
    def passes(self) -> bool:
        return self.share >= MOST

    @property
    def partly(self) -> bool:
        return self.share >= _PARTLY


def share_within(reference: torch.Tensor, answer: torch.Tensor, tolerance: float) -> float:
    """The share of elements with |reference - answer| <= tolerance + tolerance |reference|; equality for integers."""
    return shares_within(reference, answer, [tolerance])[0]


def shares_within(reference: torch.Tensor, answer: torch.Tensor, tolerances: list[float]) -> list[float]:
    """`share_within` for several tolerances in one pass."""
    if reference.numel() == 0:
        return [1.0] * len(tolerances)
    if not (reference.is_floating_point() or reference.is_complex()):
        return [float((reference == answer).double().mean())] * len(tolerances)
    # In double precision, so that the probe itself rounds nothing away.
    wide = torch.complex128 if reference.is_complex() else torch.float64
    expected, got = reference.to(wide), answer.to(wide)
    # |d| <= t (1 + |ref|); NaN must meet NaN, and an infinity its like (0 / inf and inf - inf are no numbers).
    error = (expected - got).abs() / (1 + expected.abs())
    error = torch.where((expected == got) | (expected.isnan() & got.isnan()), 0.0, error)
    return [float((error <= tolerance).double().mean()) for tolerance in tolerances]


def probe(name: str, references: list[torch.Tensor], answers: list[torch.Tensor] | None) -> Probe | None:
    """The answer against all outputs; the share is that of the output it fits worst. None when shapes differ."""
    if answers is None or len(answers) != len(references):
        return None
    if any(a.shape != r.shape for a, r in zip(answers, references, strict=True)):
        return None
    shares = [shares_within(r, a, [ATOL, STRICT]) for r, a in zip(references, answers, strict=True)]
    return Probe(name, min(loose for loose, _ in shares), min(strict for _, strict in shares))


def trivial_answers(
    first: list[torch.Tensor],
    second: list[torch.Tensor],
    other_weights: list[torch.Tensor] | None,
    inputs: list[Any],
    fresh: bool = True,
) -> list[Probe]:
    """Every trivial answer that can be given for `first`.

    `second` is the model's answer to another draw of the inputs, `other_weights` its answer to the first draw with
    other weights; constants are fitted on `second`, as a solution would have to learn them beforehand. Without
    `fresh` the two draws are the same, and the answer to another input is not held against anything.
    """
    found = [
        probe("zeros", first, [torch.zeros_like(t) for t in first]),
        probe("one constant", first, [_constant(s, f) for s, f in zip(second, first, strict=False)]),
    ]
    for axis, name in ((1, "a constant per channel"), (-1, "a constant per column")):
        if all(t.dim() >= 2 and t.shape[0] > 1 for t in first) and (axis == 1 or any(t.dim() > 2 for t in first)):
            found.append(probe(name, first, [_per_axis(s, f, axis) for s, f in zip(second, first, strict=False)]))
    if len(first) == 1:
        for value in tensors_in(inputs):
            if value.shape == first[0].shape and value.dtype == first[0].dtype:
                found.append(probe("the input itself", first, [value]))
                break
    if fresh:
        found.append(probe("the answer to another input", first, second))
    if other_weights is not None:
        found.append(probe("the answer with other weights", first, other_weights))
    return [p for p in found if p is not None]


def _constant(fitted: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The one number that suits `fitted` best: its median or the middle of its range."""
    if not fitted.is_floating_point() or fitted.numel() == 0:
        value = fitted.reshape(-1).mode().values if fitted.numel() and not fitted.is_complex() else torch.zeros(())
        return torch.full_like(like, value.item())
    flat = fitted.reshape(-1).double()
    candidates = [flat.median(), (flat.min() + flat.max()) / 2]
    best = max(candidates, key=lambda c: share_within(fitted, c.expand_as(fitted), ATOL) if c.isfinite() else -1.0)
    return torch.full_like(like, float(best))


def _per_axis(fitted: torch.Tensor, like: torch.Tensor, axis: int) -> torch.Tensor:
    if fitted.shape[1:] != like.shape[1:] or not fitted.is_floating_point():
        return _constant(fitted, like)
    others = [d for d in range(fitted.dim()) if d != axis % fitted.dim()]
    return fitted.double().mean(others, keepdim=True).to(like.dtype).expand_as(like)


def rms(tensors: list[torch.Tensor]) -> float:
    """Root mean square over all floating outputs."""
    values = [t.double().reshape(-1) for t in tensors if t.is_floating_point() and t.numel()]
    return float(torch.cat(values).square().mean().sqrt()) if values else float("nan")


@dataclass(frozen=True)
class Cure:
    """Other inputs, or other initial weights, under which the problem can be judged."""

    said: str
    inputs: Callable[[list[Any]], list[Any]]
    weights: Callable[[torch.nn.Module], None] | None = None


def cures() -> list[Cure]:
    """Cures in the order they are tried: the least change first."""
    return [
        Cure("draw the inputs with torch.randn (mean 0, both signs)", _normal(1.0)),
        Cure("draw the inputs as 4 * torch.randn", _normal(4.0)),
        Cure(
            "draw the inputs as a * torch.randn(...) + b, a from U(0.5, 2) and b from N(0, 1) per sample and channel",
            _spread,
        ),
        Cure(
            "scale each draw of the inputs by a factor of its own, 4 * torch.rand(1) * torch.randn(...)", _scaled_draw
        ),
        Cure(
            "draw the inputs with torch.randn and use He-normal weights (torch.nn.init.kaiming_normal_)",
            _normal(1.0),
            _he,
        ),
        Cure("draw the inputs with torch.randn and initialise the weights 4 times larger", _normal(1.0), _scale(4.0)),
        Cure("draw the inputs as 3 * torch.randn and initialise the weights 3 times larger", _normal(3.0), _scale(3.0)),
        Cure(
            "spread the inputs per sample and channel, a * torch.randn(...) + b, and make the weights 5 times larger",
            _spread,
            _scale(5.0),
        ),
        Cure("spread the inputs per sample and channel and use He-normal weights", _spread, _he),
    ]


def _floats(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[list[Any]], list[Any]]:
    def changed(values: list[Any]) -> list[Any]:
        return torch.utils._pytree.tree_map(
            lambda v: change(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v, values
        )

    return changed


def _normal(scale: float) -> Callable[[list[Any]], list[Any]]:
    return _floats(lambda t: torch.randn(t.shape).to(t.dtype) * scale)


def _spread_one(tensor: torch.Tensor) -> torch.Tensor:
    leading = tensor.shape[:2] if tensor.dim() > 2 else tensor.shape[:1]
    shape = [*leading, *[1] * (tensor.dim() - len(leading))]
    a, b = torch.rand(shape) * 1.5 + 0.5, torch.randn(shape)
    return (a * torch.randn(tensor.shape) + b).to(tensor.dtype)


_spread = _floats(_spread_one)


def _scaled_draw(values: list[Any]) -> list[Any]:
    factor = 0.25 + 4.0 * float(torch.rand(()))
    return _normal(factor)(values)


def _he(model: torch.nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.dim() >= 2 and parameter.is_floating_point():
            torch.nn.init.kaiming_normal_(parameter.data)


def _scale(factor: float) -> Callable[[torch.nn.Module], None]:
    def scaled(model: torch.nn.Module) -> None:
        for parameter in model.parameters():
            if parameter.dim() >= 2 and parameter.is_floating_point():
                parameter.data.mul_(factor)

    return scaled
