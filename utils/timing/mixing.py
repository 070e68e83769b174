"""Inputs that never come twice: each element taken at random from one of two draws, on the device, in place.

Every element changes with probability one half from call to call, so that neither a whole answer nor a row of it can be
remembered, and every value is one that get_inputs drew for that place. Where there is only one draw (a large one, or
draws whose shapes differ), the second is the first shifted along its memory. Works on storages: inputs that share
memory, or overlap, stay as get_inputs made them. Inputs that every draw makes alike stay alike.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from utils.timing.work import walk

# Elements at a time, to keep the mask small beside inputs that fill the device.
_PIECE = 1 << 26
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


class Mixed:
    """`values`: a copy of `first`, whose elements `renew` takes anew from `first` and `second`."""

    def __init__(self, first: list[Any], second: list[Any] | None) -> None:
        self.values = copy.deepcopy(first)
        # Set where only whole draws will do: then one of the two is taken as it is.
        self.whole = False
        if second is not None and _layout(first) != _layout(second):
            second = None
        self._parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, int]] = []
        seen: set[int] = set()
        others = list(walk(second)) if second is not None else [None] * len(list(walk(first)))
        for own, one, two in zip(walk(self.values), walk(first), others, strict=True):
            place = own.untyped_storage().data_ptr()
            if own.numel() == 0 or place in seen:
                continue
            seen.add(place)
            if two is not None and two.untyped_storage().nbytes() != one.untyped_storage().nbytes():
                continue
            # Whole rows of the first dimension, so that what a column may hold stays in its column.
            row = one[0].numel() if one.dim() > 1 and one.is_contiguous() and len(one) > 1 else 1
            words = one.itemsize // _WORDS[one.itemsize].itemsize
            self._parts.append((_flat(own), _flat(one), None if two is None else _flat(two), row * words))
        self._generators: dict[torch.device, torch.Generator] = {}

    def renew(self, seed: int) -> None:
        """New values at the same addresses, from `seed` alone."""
        for number, (own, one, two, row) in enumerate(self._parts):
            generator = self._generators.setdefault(own.device, torch.Generator(own.device))
            if self.whole:
                own.copy_(one if two is None or seed % 2 else two)
                continue
            generator.manual_seed((seed + number) % (1 << 63))
            shift = 0 if two is not None else row * (1 + (seed >> number % 20) % max(1, own.numel() // row - 1))
            for begin in range(0, own.numel(), _PIECE):
                end = min(begin + _PIECE, own.numel())
                other = two[begin:end] if two is not None else _around(one, begin + shift, end - begin)
                mask = torch.empty(end - begin, dtype=torch.bool, device=own.device).bernoulli_(generator=generator)
                torch.where(mask, one[begin:end], other, out=own[begin:end])


def _around(flat: torch.Tensor, begin: int, count: int) -> torch.Tensor:
    """`count` elements from `begin` on, going on at the first after the last."""
    begin %= flat.numel()
    if begin + count <= flat.numel():
        return flat[begin : begin + count]
    return torch.cat([flat[begin:], flat[: count - (flat.numel() - begin)]])


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The whole storage of `tensor` as integers of its element size, which any dtype's bits survive."""
    word = _WORDS[tensor.itemsize]
    storage = tensor.untyped_storage()
    made = torch.empty(0, dtype=word, device=tensor.device)
    return made.set_(storage, 0, (storage.nbytes() // word.itemsize,), (1,))


def _layout(args: list[Any]) -> list[Any]:
    return [(tensor.shape, tensor.stride(), tensor.dtype, tensor.storage_offset()) for tensor in walk(args)]
