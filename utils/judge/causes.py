"""What kind of mistake gives just this wrong answer: recognised from answers the judge knows from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from utils.judge.comparing import Leaf
from utils.native.compare import compare

_NEAR = 0.05

OLD_INPUT = (
    "stale",
    "the answer is the one to earlier weights: memoised by its input, or packed weights were not renewed when new ones "
    "were loaded",
)
OLD_VALUES = (
    "stale",
    "the answer is the one to the values that lay at the same address before: memoised by address or object",
)
OLD_WEIGHTS = (
    "stale",
    "the answer is the one with the weights of the trial before: what was computed from them (packed, converted or "
    "folded weights) must be renewed when others are loaded",
)
ONLY_AFTER_RELOAD = (
    "hint",
    "the answers were right until other weights were loaded into the same module: a parameter is not used, or "
    "something computed from the earlier weights is kept",
)
_POISONED = (
    "stream_order",
    "NaN came out where none belongs: inputs were read before they were delivered on the caller's stream (a launch on "
    "another stream that does not wait for it: give every launch c10::cuda::getCurrentCUDAStream()), or memory was "
    "used that nothing had written",
)


@dataclass(frozen=True)
class Wrong:
    """A wrong result: the solution's tensors, the reference's, and how each compared."""

    slots: Sequence[torch.Tensor]
    expected: Sequence[torch.Tensor]
    leaves: Sequence[Leaf]

    def is_rather(self, other: Sequence[torch.Tensor] | None) -> bool:
        """Whether it is the `other` answer: far nearer to it than that is to the expected one, in every tensor."""
        if other is None or [tensor.shape for tensor in other] != [tensor.shape for tensor in self.slots]:
            return False
        apart = False
        for one, truth, value in zip(other, self.expected, self.slots, strict=True):
            one, truth = one.to(value.device), truth.to(value.device)
            if one.dtype != value.dtype or truth.shape != one.shape:
                return False
            distance = compare(truth, one, 0.0, 0.0, locate=False)
            found = compare(one, value, 0.0, 0.0, locate=False)
            if found.nonfinite_mismatch or found.rms_error > _NEAR * distance.rms_error:
                return False
            apart |= distance.failing > 0
        return apart

    def from_values(self) -> tuple[str, str] | None:
        """A cause that the values alone show: a constant, or poison that was computed with."""
        compared = [leaf for leaf in self.leaves if leaf.comparison is not None]
        for leaf, value, truth in zip(compared, self.slots, self.expected, strict=False):
            found = leaf.comparison
            if leaf.passed or found is None:
                continue
            if value.numel() > 1 and _constant(value) and not _constant(truth):
                return "trivial", f"every element that ModelNew returned is {value.flatten()[0].item():g}"
            if value.is_cuda and found.nan_actual > found.nan_expected + found.unwritten:
                return _POISONED
        return None


def _constant(value: torch.Tensor) -> bool:
    return bool((value == value.flatten()[0]).all())
