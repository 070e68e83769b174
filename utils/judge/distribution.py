"""For a Model that draws random numbers in forward: do both sides draw from the same distribution?

Both sides are seeded alike, and a solution that draws from torch's generators as Model does gives the same numbers. A
kernel with a generator of its own cannot; it is judged by what can be demanded of it: over many draws each element has
the same mean and spread, and is zero as often (dropout), within what chance allows for so few draws.

Two more properties belong to all elements together, and are compared as one number per draw, so that they need no
assumption on how elements depend on one another:

    signal       the projection of a draw on Model's mean (of the first half of the draws, apart from the second half
                 that is projected). A solution that loses part of the signal under louder noise has a smaller one.
    structure    for differences of two draws, free of any mean: the mean square of their averages along each
                 dimension, and the mean product of neighbours along it. Noise shared between elements raises both.

Both samples of such numbers are compared by Welch's statistic (B. L. Welch, Biometrika 34, 1947).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
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
# Mean squared distance of the means in units of its expectation is 1.1 by chance for independent elements; where one
# number is shared by all elements, it exceeds 33 once in a million. Variances of 32 draws differ by a factor of 5.5
# once in a hundred thousand (F distribution).
_MOST_KEPT = 1 << 21  # elements of one draw
_MOST_DISTANCE, _MOST_SPREAD, _MOST_ZEROS = 33.0, 5.5, 0.02
# Sixteen numbers against sixteen: beyond 6 once in a million by chance. What is apart by less than these shares of its
# size is nothing: other precision does that.
_MOST_APART, _SIGNAL_SHARE, _STRUCTURE_SHARE = 6.0, 0.02, 0.1


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
        self.zeros: list[float] = []
        self.count = 0
        self.samples: list[torch.Tensor] | None = [] if like.numel() <= _MOST_KEPT else None
        self.signal: list[float] = []
        self.structure: dict[str, list[float]] = {}
        self._before: torch.Tensor | None = None

    def project(self, direction: torch.Tensor, value: torch.Tensor) -> None:
        """Notes how much of `direction` (of length one) a draw holds."""
        self.signal.append(float((_real(value.to(self.sum.dtype)) * direction).sum()))

    def pair(self, value: torch.Tensor) -> None:
        """Notes the structure of the noise with every second draw, from its difference to the one before."""
        if self._before is None:
            self._before = value.clone()
            return
        noise = _real(value.to(self.sum.dtype) - self._before.to(self.sum.dtype)) / 2**0.5
        self._before = None
        if not noise.numel():
            return
        figures = {"spread": (noise**2).mean(), "average over all": noise.mean() ** 2}
        for dim, length in enumerate(noise.shape):
            if length > 1:
                figures[f"average along dimension {dim}"] = (noise.mean(dim) ** 2).mean()
                near, next_ = noise.narrow(dim, 0, length - 1), noise.narrow(dim, 1, length - 1)
                figures[f"neighbours along dimension {dim}"] = (near * next_).mean()
        for name, figure in figures.items():
            self.structure.setdefault(name, []).append(float(figure))

    def add(self, value: torch.Tensor) -> None:
        wide = value.to(self.sum.dtype)
        self.sum += wide
        self.square += wide.abs() ** 2
        self.zeros.append(float((wide == 0).double().mean()) if wide.numel() else 0.0)
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
    samples = Samples()
    source = random.Random(seed)
    for _ in range(DRAWS):
        ours, theirs = source.randrange(1 << 62), source.randrange(1 << 62)
        args, kwargs = inputs.values()
        with references.full_precision():
            expected = references.tensors(reference.run(args, kwargs, seed=ours))
        called = session.call(inputs, outputs, seed=theirs, late=False, flush=session.device.type == "cuda")
        if structure.differences(outputs.expected, called.out) or not all(called.copied):
            return Agreement(False, "the structure of the result changes from draw to draw")
        samples.add(expected, outputs.tensors())
    return samples.agreement()


class Samples:
    """DRAWS draws of both sides, as sums and numbers per draw; few of the draws themselves are kept."""

    def __init__(self) -> None:
        self._ours: list[_Moments] = []
        self._theirs: list[_Moments] = []
        self._directions: list[torch.Tensor] = []

    def add(self, ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor]) -> None:
        """One draw of Model's outputs and one of ModelNew's, alike in shape; on any device."""
        if not self._ours:
            self._ours = [_Moments(tensor) for tensor in theirs]
            self._theirs = [_Moments(tensor) for tensor in theirs]
        if self._ours and self._ours[0].count == DRAWS // 2:
            self._directions = [_direction(moments.mean) for moments in self._ours]
        for side, values in ((self._ours, ours), (self._theirs, theirs)):
            for number, (moments, value) in enumerate(zip(side, values, strict=True)):
                here = value.to(moments.sum.device)
                moments.add(here)
                moments.pair(here)
                if self._directions:
                    moments.project(self._directions[number], here)

    def agreement(self) -> Agreement:
        """Whether both look like one distribution, after all DRAWS draws."""
        return _judge([_compare(one, two) for one, two in zip(self._ours, self._theirs, strict=True)])


def _real(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value) if value.is_complex() else value


def _direction(mean: torch.Tensor) -> torch.Tensor:
    """The mean as a vector of length one."""
    mean = _real(mean)
    return mean / mean.norm().clamp(min=1e-300)


def _apart(one: list[float], two: list[float], negligible: float) -> bool:
    """Whether two samples have different means: by Welch's statistic, and by more than `negligible`."""
    first, second = torch.tensor(one, dtype=torch.float64), torch.tensor(two, dtype=torch.float64)
    error = float(first.var() / len(one) + second.var() / len(two)) ** 0.5
    return abs(float(first.mean() - second.mean())) > max(_MOST_APART * error, negligible)


def _together(one: _Moments, two: _Moments) -> str:
    """What differs of signal and structure, as the end of a sentence; empty when nothing does."""
    size = float(_real(one.mean).norm())
    if _apart(one.signal, two.signal, _SIGNAL_SHARE * size):
        ours, theirs = sum(one.signal) / len(one.signal), sum(two.signal) / len(two.signal)
        return f"ModelNew's draws hold {theirs:.3g} of Model's mean where Model's hold {ours:.3g}"
    spread = sum(one.structure.get("spread", [0.0])) / (DRAWS // 2)
    for name, ours_ in one.structure.items():
        theirs_ = two.structure[name]
        least = spread if name.startswith("neighbours") else sum(ours_) / len(ours_)
        if _apart(ours_, theirs_, _STRUCTURE_SHARE * least):
            return (
                f"elements of the noise depend on one another in another way ({name}: "
                f"{sum(theirs_) / len(theirs_):.3g}, Model's {sum(ours_) / len(ours_):.3g})"
            )
    return ""


def _allowed_distance(moments: _Moments) -> float:
    """How large the mean squared distance of the means may be by chance.

    It depends on how many elements vary independently, which the reference's own draws show: the mean over elements of
    a draw's squared deviation, in units of the variance, itself varies by 2 over that number. The bound is that of a
    chi-square variable (B. Laurent and P. Massart, Annals of Statistics 28, 2000), tighter where few vary.
    """
    varies = moments.variance > 0
    if moments.samples is None or not bool(varies.any()):
        return _MOST_DISTANCE
    unit = moments.variance[varies]
    deviations = [float(((sample - moments.mean).abs()[varies] ** 2 / unit).mean()) for sample in moments.samples]
    independent = 2.0 / max(torch.tensor(deviations).var().item(), 1e-12)
    return min(_MOST_DISTANCE, 1.25 * (1 + 5.25 * (2.0 / independent) ** 0.5 + 18.0 / independent))


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
        "zeros": abs(sum(one.zeros) - sum(two.zeros)) / one.count,
        "zeros apart": _apart(one.zeros, two.zeros, _MOST_ZEROS),
        "together": _together(one, two),
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
        if figure["zeros apart"]:
            return Agreement(False, f"{where}the share of zeros differs by {100 * figure['zeros']:.1f} points")
        if figure["together"]:
            return Agreement(False, f"{where}over {DRAWS} draws, {figure['together']}")
    return Agreement(
        True,
        f"ModelNew's random numbers are not Model's, but {DRAWS} draws of each have the same means, spreads, "
        "structure and shares of zeros",
    )
