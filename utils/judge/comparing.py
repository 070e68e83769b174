"""A result of the solution beside the reference's: structure first, then every tensor and number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from utils.judge import structure
from utils.judge.handles import Outputs
from utils.judge.session import Called
from utils.judge.tolerance import Tolerance, close_miss, rounded_up, tell
from utils.native.compare import Comparison, compare

__all__ = ["Compared", "Leaf", "Tolerance", "close_miss", "compare_result", "rounded_up", "tell"]


@dataclass
class Leaf:
    """One tensor or number of a result. `comparison` is None for what has no tensor to compare."""

    path: str
    sentence: str = ""
    comparison: Comparison | None = None

    @property
    def passed(self) -> bool:
        return not self.sentence


@dataclass
class Compared:
    """A whole result: what differs in structure, and each leaf."""

    structure: list[str] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.structure and all(leaf.passed for leaf in self.leaves)

    def sentences(self) -> list[str]:
        return [*self.structure, *(leaf.sentence for leaf in self.leaves if leaf.sentence)]

    def worst(self) -> Comparison | None:
        """The comparison with the largest error relative to its tolerance."""
        compared = [leaf.comparison for leaf in self.leaves if leaf.comparison is not None]
        return max(compared, key=lambda item: item.worst_ratio, default=None)


def compare_result(
    expected: Sequence[torch.Tensor],
    outputs: Outputs,
    called: Called,
    tolerances: Mapping[str, Tolerance],
    default: Tolerance,
) -> Compared:
    """`expected`: the reference's tensors in the order of the tree; the solution's are in `outputs`."""
    result = Compared(structure.differences(outputs.expected, called.out))
    if result.structure:
        return result
    slots = outputs.tensors()
    ours = list(structure.leaves(outputs.expected))
    theirs = dict(structure.leaves(called.out))
    index = 0
    for path, node in ours:
        tolerance = tolerances.get(path, default)
        if node["k"] != "tensor":
            result.leaves.append(_compare_plain(path, node, theirs.get(path, {"k": "none"}), tolerance))
            continue
        if index >= len(called.copied) or not called.copied[index]:
            result.leaves.append(Leaf(path, f"{path} was returned but could not be read"))
        else:
            # A result of the reference's that lies elsewhere (a CPU scalar, say) is brought to the slot.
            found = compare(
                expected[index].to(slots[index].device),
                slots[index],
                tolerance.atol,
                tolerance.rtol,
                poison_seed=outputs.poison_seed,
            )
            result.leaves.append(Leaf(path, "" if found.passed else tell(path, found, tolerance), found))
        index += 1
    return result


def _compare_plain(path: str, ours: structure.Node, theirs: structure.Node, tolerance: Tolerance) -> Leaf:
    if ours["k"] == "other" or ours == theirs:
        return Leaf(path)
    if ours["k"] in ("float", "complex"):
        one, two = structure.decode(ours, _never), structure.decode(theirs, _never)
        if _both_nan(one, two) or one == two or abs(one - two) <= tolerance.atol + tolerance.rtol * abs(one):
            return Leaf(path)
    return Leaf(path, f"{path} is {structure.show(theirs)}, the reference returns {structure.show(ours)}")


def _both_nan(one: complex, two: complex) -> bool:
    return one != one and two != two


def _never(node: structure.Node) -> Any:
    raise AssertionError("a plain value holds no tensor")
