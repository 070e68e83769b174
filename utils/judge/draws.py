"""Seeds of a run, and inputs made out of two draws."""

from __future__ import annotations

import random
from typing import Any

import torch


def trial_seeds(master: int, number: int) -> dict[str, int]:
    """The seeds of trial `number` (from 1), all drawn from the run's own."""
    source = random.Random(f"{master}/{number}")
    names = ("construct", "weights", "x", "y", "call", "second_call", "third_call")
    return {name: source.randrange(1 << 62) for name in names}


def partly(x: list[Any], other: list[Any], seed: int) -> list[Any]:
    """`x` with a contiguous eighth of each tensor's elements (at least one) taken from another draw."""
    source = random.Random(seed)

    def mixed(one: Any, two: Any) -> Any:
        if isinstance(one, torch.Tensor):
            if (
                not isinstance(two, torch.Tensor)
                or one.shape != two.shape
                or one.numel() == 0
                or not one.is_contiguous()
            ):
                return one
            part = max(1, one.numel() // 8)
            begin = source.randrange(one.numel() - part + 1)
            made = one.detach().clone()
            made.view(-1)[begin : begin + part] = two.reshape(-1)[begin : begin + part]
            return made.requires_grad_(one.requires_grad)
        if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
            return [mixed(a, b) for a, b in zip(one, two, strict=True)]
        if type(one) is tuple and type(two) is tuple and len(one) == len(two):
            return tuple(mixed(a, b) for a, b in zip(one, two, strict=True))
        if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
            return {key: mixed(one[key], two[key]) for key in one}
        return one

    if len({id(item) for item in x}) != len(x):
        return other  # the same tensor given twice must stay the same tensor
    return [mixed(one, two) for one, two in zip(x, other, strict=True)] if len(x) == len(other) else other
