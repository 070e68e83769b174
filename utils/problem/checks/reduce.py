"""The same problem at a size the CPU can run many times: its own small variant, or fewer rows of the first axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from utils.problem.checks.estimate import Estimate, estimate, input_bytes, tensors_in
from utils.problem.problem import Problem

# One forward of the probes: small enough that twenty of them pass in seconds on a few cores.
CHEAP_FLOPS = 4e9
CHEAP_BYTES = 32 << 20
_DRAWABLE_BYTES = 1 << 30

_SIZED = {"rand", "randn", "zeros", "ones", "empty"}
_SIZE_KEYWORD = {"rand", "randn", "zeros", "ones", "empty", "full", "randint", "normal"}


@dataclass(frozen=True)
class Size:
    """How the probes call the problem: `said` names the size for a person, needs is None when unknown."""

    said: str
    small: bool
    draw: Callable[[], list[Any]]
    needs: Estimate | None


def choose_size(problem: Problem, full: Estimate | None) -> Size | None:
    """The largest cheap size: full, the file's small variant, or a cut of the first axis; None if there is none."""
    if full is not None and _cheap(full):
        return Size("at full size", False, problem.inputs, full)
    if problem.has_small:
        needs = estimate(problem, lambda: problem.inputs(small=True), small=True)
        return Size("at the size of get_small_inputs()", True, lambda: problem.inputs(small=True), needs)
    if full is None:
        size = input_bytes(problem.inputs)
        # Nothing is known of its work; a small input is the best sign there is.
        return Size("at full size", False, problem.inputs, None) if size is not None and size < CHEAP_BYTES else None
    rows = next((shape[0] for shape in full.shapes if shape), 0)
    for keep in _cuts(rows, full):
        for draw in (_cut_all(problem, rows, keep), *_cut_first(problem, full, keep)):
            needs = estimate(problem, draw)
            if needs is None or needs.shapes == full.shapes:
                continue
            bearable = needs.work <= 16 * CHEAP_BYTES and needs.flops <= 16 * CHEAP_FLOPS
            if _cheap(needs) or (keep <= 2 and bearable):
                return Size(f"with {keep} of {rows} rows of the first axis", False, draw, needs)
    return None


def _cheap(needs: Estimate) -> bool:
    return needs.flops <= CHEAP_FLOPS and needs.work <= CHEAP_BYTES and needs.inputs <= 8 * CHEAP_BYTES


def _cuts(rows: int, full: Estimate) -> list[int]:
    """Row counts worth trying, largest first."""
    cost = max(full.flops / CHEAP_FLOPS, full.work / CHEAP_BYTES, 1.0)
    guess = max(int(rows / cost), 1)
    return sorted(
        {n for n in (guess, guess // 2, guess // 4, 8, 4, 2, 1) if 0 < n < rows and n <= max(guess, 2)}, reverse=True
    )


class _Shrunk(TorchFunctionMode):
    """Factory functions called with `rows` as the first size make `keep` rows instead: nothing large is drawn."""

    def __init__(self, rows: int, keep: int) -> None:
        super().__init__()
        self.rows, self.keep = rows, keep

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _SIZE_KEYWORD:
            if "size" in kwargs:
                kwargs["size"] = self._cut(kwargs["size"])
            elif name in _SIZED and args and isinstance(args[0], int):
                args = self._cut(args)
            elif name in {*_SIZED, "full"} and args:
                args = (self._cut(args[0]), *args[1:])
            elif name == "randint":
                args = tuple(self._cut(a) if isinstance(a, (tuple, list, torch.Size)) else a for a in args)
        return func(*args, **kwargs)

    def _cut(self, size: Any) -> Any:
        if isinstance(size, (tuple, list, torch.Size)) and len(size) > 0 and size[0] == self.rows:
            return (self.keep, *size[1:])
        return size


def _cut_all(problem: Problem, rows: int, keep: int) -> Callable[[], list[Any]]:
    def draw() -> list[Any]:
        with _Shrunk(rows, keep):
            return problem.inputs()

    return draw


def _cut_first(problem: Problem, full: Estimate, keep: int) -> list[Callable[[], list[Any]]]:
    """Only the first tensor cut, by slicing a full draw: A's rows in A @ B, where B's first axis is another thing."""
    if full.inputs > _DRAWABLE_BYTES:
        return []

    def draw() -> list[Any]:
        given = problem.inputs()
        first = next((i for i, value in enumerate(given) if isinstance(value, torch.Tensor) and value.dim() > 0), None)
        if first is not None:
            given[first] = given[first][:keep].clone()
        return given

    return [draw]


def same_kind(values: list[Any]) -> list[tuple[Any, ...]]:
    """Shapes, strides and dtypes of the tensors in a draw, for comparing two draws."""
    return [(tuple(t.shape), t.stride(), t.dtype) for t in tensors_in(values)]
