"""For a Model that draws random numbers in forward: do both sides draw from the same distribution?

Both sides are seeded alike, and a solution that draws from torch's generators as Model does gives the same numbers. A
kernel with a generator of its own cannot; it is judged by what can be demanded of it: over many draws each element has
the same mean and spread, and is zero as often (dropout), within what chance allows for so few draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from utils.judge import reference as references
from utils.judge import structure
from utils.judge.reference import Reference

if TYPE_CHECKING:
    from utils.judge.handles import Inputs, Outputs
    from utils.judge.session import Session

DRAWS = 32
# Mean squared distance of the means in units of its expectation is 1.1 by chance for independent elements; one number
# shared by all elements stays below 8 in 99 of 100 cases. Spreads of 32 draws differ by less than 3 in 998 of 1000.
_MOST_KEPT = 1 << 21  # elements of one draw
_MOST_DISTANCE, _MOST_SPREAD, _MOST_ZEROS = 8.0, 3.0, 0.02


@dataclass(frozen=True)
class Agreement:
    """`holds`: whether the samples look like one distribution; the sentence carries the figures either way."""

    holds: bool
    sentence: str


class _Moments:
    """Running sums over draws of one output, in double."""

    def __init__(self, like: torch.Tensor) -> None:
        kind = torch.complex128 if like.is_complex() else torch.float64
        self.sum = torch.zeros(like.shape, dtype=kind, device=like.device)
        self.square = torch.zeros(like.shape, dtype=torch.float64, device=like.device)
        self.zeros = 0.0
        self.count = 0
        self.samples: list[torch.Tensor] | None = [] if like.numel() <= _MOST_KEPT else None

    def add(self, value: torch.Tensor) -> None:
        wide = value.to(self.sum.dtype)
        self.sum += wide
        self.square += wide.abs() ** 2
        self.zeros += float((wide == 0).double().mean()) if wide.numel() else 0.0
        self.count += 1
        if self.samples is not None:
            self.samples.append(wide.clone())

    @property
    def mean(self) -> torch.Tensor:
        return self.sum / self.count

    @property
    def variance(self) -> torch.Tensor:
        return ((self.square - self.mean.abs() ** 2 * self.count) / (self.count - 1)).clamp(min=0)


def same_distribution(session: Session, reference: Reference, inputs: Inputs, outputs: Outputs, seed: int) -> Agreement:
    """Draws from both sides with seeds of their own and compares the samples. Raises RunnerFailed and CannotTell."""
    ours: list[_Moments] = []
    theirs: list[_Moments] = []
    for draw in range(DRAWS):
        args, kwargs = inputs.values()
        with references.full_precision():
            expected = references.tensors(reference.run(args, kwargs, seed=seed + 2 * draw))
        called = session.call(inputs, outputs, seed=seed + 2 * draw + 1, flush=False, late=False)
        if structure.differences(outputs.expected, called.out) or not all(called.copied):
            return Agreement(False, "the structure of the result changes from draw to draw")
        slots = outputs.tensors()
        if not ours:
            ours = [_Moments(tensor) for tensor in slots]
            theirs = [_Moments(tensor) for tensor in slots]
        for moments, value in zip(ours, expected, strict=True):
            moments.add(value.to(moments.sum.device))
        for moments, value in zip(theirs, slots, strict=True):
            moments.add(value)
    figures = [_compare(one, two) for one, two in zip(ours, theirs, strict=True)]
    return _judge(figures)


def _allowed_distance(moments: _Moments) -> float:
    """How large the mean squared distance of the means may be by chance.

    It depends on how many elements vary independently, which the reference's own draws show: the mean over elements of
    a draw's squared deviation, in units of the variance, itself varies by 2 over that number.
    """
    varies = moments.variance > 0
    if moments.samples is None or not bool(varies.any()):
        return _MOST_DISTANCE
    unit = moments.variance[varies]
    deviations = [float(((sample - moments.mean).abs()[varies] ** 2 / unit).mean()) for sample in moments.samples]
    independent = 2.0 / max(torch.tensor(deviations).var().item(), 1e-12)
    return min(_MOST_DISTANCE, 1.25 * (1 + 5 * (2.0 / independent) ** 0.5))


def _compare(one: _Moments, two: _Moments) -> dict[str, Any]:
    """Distance of the means, ratio of the spreads, difference of the shares of zeros."""
    spread = one.variance + two.variance
    varies = spread > 0
    allowed = _allowed_distance(one)
    distance = (one.mean - two.mean).abs() ** 2
    fixed = distance[~varies]
    still = float(fixed.max()) if fixed.numel() else 0.0
    means = float((distance[varies] / (spread[varies] / one.count)).mean()) if bool(varies.any()) else 0.0
    first, second = float(one.variance.sum()), float(two.variance.sum())
    ratio = second / first if first else (1.0 if second == 0 else float("inf"))
    return {
        "means": means,
        "allowed": allowed,
        "still": still**0.5,
        "ratio": ratio,
        "zeros": abs(one.zeros - two.zeros) / one.count,
    }


def _judge(figures: list[dict[str, Any]]) -> Agreement:
    for number, figure in enumerate(figures):
        where = f"output {number}: " if len(figures) > 1 else ""
        if figure["means"] > figure["allowed"] or figure["still"] > 1e-2:
            return Agreement(
                False,
                f"{where}the means over {DRAWS} draws differ by more than chance ({figure['means']:.1f} times "
                "the expected squared distance)",
            )
        if not 1 / _MOST_SPREAD < figure["ratio"] < _MOST_SPREAD:
            return Agreement(
                False, f"{where}the spread over {DRAWS} draws is {figure['ratio']:.3g} times Model's (variance)"
            )
        if figure["zeros"] > _MOST_ZEROS:
            return Agreement(False, f"{where}the share of zeros differs by {100 * figure['zeros']:.1f} points")
    return Agreement(
        True,
        f"ModelNew's random numbers are not Model's, but {DRAWS} draws of each have the same means, spreads "
        "and shares of zeros",
    )
