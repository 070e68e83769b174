"""Parts of a model that never act: a clamp no value reaches, a softmax that hardly prefers anything.

Watched from below, at the operators torch dispatches while the model runs, so that it does not matter how the part was
written. Each is counted by the line of the problem file that led to it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# operator -> what a person calls it. Each maps its first argument elementwise and leaves part of the number line alone.
_BENDING = {
    "relu": "relu", "clamp": "clamp", "clamp_min": "clamp", "clamp_max": "clamp", "hardtanh": "hardtanh / relu6",
    "leaky_relu": "leaky_relu", "elu": "elu", "threshold": "threshold", "hardswish": "hardswish", "abs": "abs",
    "hardsigmoid": "hardsigmoid", "minimum": "min", "maximum": "max", "_prelu_kernel": "prelu", "relu6": "relu6",
    "celu": "celu", "hardshrink": "hardshrink", "softshrink": "softshrink",
}  # fmt: skip
# Of these a constant result means that everything was flattened.
_FLATTENING = {
    "relu",
    "clamp",
    "clamp_min",
    "clamp_max",
    "hardtanh",
    "hardsigmoid",
    "minimum",
    "maximum",
    "threshold",
    "hardswish",
}
_SOFTMAX = {"_softmax", "_safe_softmax"}


@dataclass
class Part:
    """One place in the model: how many elements passed, how many the operator changed, how many ended at a limit."""

    name: str
    line: int | None
    elements: int = 0
    changed: int = 0
    flattens: bool = False
    settled: int = 0  # elements at the lowest or at the highest value of the result, whichever are more
    order: int = 0

    @property
    def idle(self) -> bool:
        return self.elements > 0 and self.changed == 0

    @property
    def lively(self) -> bool:
        """Whether at least one element in a hundred is changed, and one in a hundred is neither floor nor ceiling."""
        return self.changed >= 0.01 * self.elements and self.settled <= 0.99 * self.elements

    @property
    def flat(self) -> bool:
        return self.flattens and self.elements > 1 and self.changed > 0 and self.settled >= 0.995 * self.elements


@dataclass
class Seen:
    """What one run showed."""

    parts: dict[tuple[str, int | None], Part] = field(default_factory=dict)
    random: list[tuple[str, int | None]] = field(default_factory=list)
    softmax: bool = False


class Watch(TorchDispatchMode):
    """Records clamp-like parts and random operators; with `uniform`, every softmax weighs all it can see alike."""

    def __init__(self, path: Path, uniform: bool = False) -> None:
        super().__init__()
        self.path = str(path)
        self.uniform = uniform
        self.seen = Seen()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = (
            func._overloadpacket.__name__.rstrip("_")
            if not func._overloadpacket.__name__.startswith("_")
            else func._overloadpacket.__name__
        )
        before = (
            args[0].clone()
            if name in _BENDING and func._schema.is_mutable and isinstance(args[0], torch.Tensor)
            else None
        )
        result = func(*args, **kwargs)
        if name in _BENDING and isinstance(result, torch.Tensor):
            self._bend(name, [before if before is not None else args[0], *args[1:]], result)
        if torch.Tag.nondeterministic_seeded in func.tags and name not in {
            "_scaled_dot_product_flash_attention_for_cpu"
        }:
            self.seen.random.append((func._overloadpacket.__name__, self._line()))
        if name in _SOFTMAX and isinstance(result, torch.Tensor):
            self.seen.softmax = True
            if self.uniform:
                weights = (result > 0).to(result.dtype)
                return weights / weights.sum(args[1], keepdim=True).clamp_min(1)
        return result

    def _bend(self, name: str, args: list[Any], result: torch.Tensor) -> None:
        if not result.is_floating_point():
            return
        line = self._line()
        part = self.seen.parts.setdefault((name, line), Part(_BENDING[name], line, order=len(self.seen.parts)))
        operands = [value for value in args if isinstance(value, torch.Tensor)]
        if name not in {"minimum", "maximum"}:
            operands = operands[:1]
        # min(x, y) acts unless it gives one of its sides everywhere; a side that is broadcast is a limit, not data.
        operands = [operand for operand in operands if operand.numel() == result.numel()] or operands[:1]
        changed = min(int((result != operand).sum()) for operand in operands)
        part.elements += result.numel()
        part.changed += changed
        if result.numel() > 1:
            part.settled += max(int((result == result.min()).sum()), int((result == result.max()).sum()))
        part.flattens = name in _FLATTENING

    def _line(self) -> int | None:
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.path:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None
