"""The judge's side of the arena: blocks of memory that both processes map, cut into guarded slots.

A block is one arena. Each slot in it lies between guard bands of a poison pattern, so that writing past an input or an
output shows even where it hits no other slot. Offsets are bytes from the start of the block.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from utils.native.arena import Arena
from utils.native.poison import poison

GUARD = 4096
ALIGNMENT = 512
_GUARD_SEED = 0x5EED

_numbers = itertools.count(1)


class Block:
    """One arena with a slot for each of `sizes` (bytes). `shift` moves every slot that many bytes off its alignment."""

    def __init__(self, device: torch.device, sizes: Sequence[int], shift: int = 0) -> None:
        self.id = next(_numbers)
        self.slots: list[int] = []
        self._places: dict[int, tuple[int, int]] = {}
        offset = GUARD
        gaps = []
        end = 0
        for size in sizes:
            number = next(_numbers)
            begin = -(-offset // ALIGNMENT) * ALIGNMENT + shift
            gaps.append((end, begin - end))
            self.slots.append(number)
            self._places[number] = (begin, size)
            end = begin + size
            offset = end + GUARD
        total = -(-(end + GUARD) // ALIGNMENT) * ALIGNMENT
        gaps.append((end, total - end))
        self.arena = Arena.create(total, device)
        self._guards = [self.arena.tensor(begin, [size], [1], torch.uint8) for begin, size in gaps if size]
        for guard in self._guards:
            poison(guard, _GUARD_SEED)
        self._pristine = [guard.clone() for guard in self._guards]

    def bytes(self, slot: int) -> torch.Tensor:
        """The slot as a flat uint8 tensor."""
        begin, size = self._places[slot]
        return self.arena.tensor(begin, [size], [1], torch.uint8)

    def tensor(
        self, slot: int, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """A tensor `offset` bytes into the slot. Raises ValueError when it would not lie inside the slot."""
        begin, nbytes = self._places[slot]
        if offset + span_bytes(size, stride, dtype.itemsize) > nbytes:
            raise ValueError(f"a tensor of size {tuple(size)} does not fit into slot {slot}")
        return self.arena.tensor(begin + offset, list(size), list(stride), dtype)

    def broken_guards(self) -> list[int]:
        """Numbers of the slots beside which guard bytes were overwritten; the guards are mended."""
        slots = []
        for index, (guard, pristine) in enumerate(zip(self._guards, self._pristine, strict=True)):
            if not torch.equal(guard, pristine):
                slots.append(self.slots[min(index, len(self.slots) - 1)] if self.slots else 0)
                guard.copy_(pristine)
        return slots

    def announcement(self) -> tuple[dict[str, Any], list[list[int]]]:
        """What the runner must be told to map it: the arena, and its slots."""
        slots = [[number, self.id, begin, size] for number, (begin, size) in self._places.items()]
        return {"id": self.id, "nbytes": self.arena.nbytes}, slots

    def close(self) -> None:
        self._guards.clear()
        self.arena.close()


def span_bytes(size: Sequence[int], stride: Sequence[int], itemsize: int) -> int:
    """Bytes from the first to one past the last element of a strided tensor (non-negative strides)."""
    if 0 in size:
        return 0
    return (1 + sum((length - 1) * step for length, step in zip(size, stride, strict=True))) * itemsize
