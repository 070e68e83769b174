"""Lays tensors out in an arena with guard bands between them, and says afterwards which slot was overrun.

The band after a slot begins with the first byte past it, so that a write one element too far is seen. Each band is
shared by its two neighbours: damage in its first half is laid to the slot before (past the end), damage in its second
half to the slot behind (before the start).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from utils.native.arena import Arena
from utils.native.poison import damage, poison
from utils.native.tensors import span_bytes

ALIGN = 512  # torch's allocator aligns to this, and kernels may rely on it
GUARD = 4096


@dataclass(frozen=True)
class Request:
    """A tensor to be placed: its address is `misalign` bytes past a multiple of `align` (from the arena's start, which
    is aligned to a page at least). `misalign` is a multiple of the dtype's size."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    align: int = ALIGN
    misalign: int = 0


@dataclass(frozen=True)
class Slot:
    """A placed tensor; `nbytes` spans its first to its last element."""

    offset: int
    nbytes: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def end(self) -> int:
        return self.offset + self.nbytes

    def tensor(self, arena: Arena) -> torch.Tensor:
        return arena.tensor(self.offset, self.size, self.stride, self.dtype)


@dataclass(frozen=True)
class Layout:
    """Slots in the order of the requests, the bands around them (one more than there are slots that hold bytes) as
    (offset, nbytes), and the bytes of all."""

    slots: tuple[Slot, ...]
    bands: tuple[tuple[int, int], ...]
    nbytes: int


def place(requests: Sequence[Request], guard: int = GUARD) -> Layout:
    """Places the requests one after the other, 2 * `guard` bytes or more of band between two, `guard` around all."""
    slots, bands, end = [], [], 0
    need = guard
    for request in requests:
        if request.misalign % request.dtype.itemsize or not 0 <= request.misalign < request.align:
            raise ValueError(
                f"misalign {request.misalign} is no multiple of the size of {request.dtype} below {request.align}"
            )
        nbytes = span_bytes(tuple(request.size), tuple(request.stride), request.dtype.itemsize)
        if nbytes == 0:
            slots.append(Slot(0, 0, tuple(request.size), tuple(request.stride), request.dtype))
            continue
        start = -(-(end + need - request.misalign) // request.align) * request.align + request.misalign
        bands.append((end, start - end))
        slots.append(Slot(start, nbytes, tuple(request.size), tuple(request.stride), request.dtype))
        end, need = start + nbytes, 2 * guard
    bands.append((end, guard))
    return Layout(tuple(slots), tuple(bands), end + guard)


@dataclass(frozen=True)
class Overrun:
    """A guard band that was written: next to `slot` (its number among the requests), at its "start" or its "end",
    `nbytes` bytes changed, the farthest of them `reach` bytes away from the slot."""

    slot: int
    side: str
    nbytes: int
    reach: int

    def __str__(self) -> str:
        place = "past its end" if self.side == "end" else "before its start"
        return f"{self.nbytes} bytes {place} were overwritten, up to {self.reach} bytes away"


class Guards:
    """The bands of one layout in one arena: poison them with `lay`, look at them with `broken`."""

    def __init__(self, arena: Arena, layout: Layout, seed: int) -> None:
        """The seed should come from the operating system, so that a solution cannot write what it overwrote."""
        owners = [number for number, slot in enumerate(layout.slots) if slot.nbytes]
        self._halves: list[tuple[int, str]] = []
        self._tensors: list[torch.Tensor] = []
        for number, (offset, nbytes) in enumerate(layout.bands):
            first, last = number == 0, number == len(layout.bands) - 1
            middle = 0 if first else nbytes if last else nbytes // 2
            for begin, length, owner, side in (
                (offset, middle, number - 1, "end"),
                (offset + middle, nbytes - middle, number, "start"),
            ):
                if length and 0 <= owner < len(owners):
                    self._halves.append((owners[owner], side))
                    self._tensors.append(arena.tensor(begin, (length,), (1,), torch.uint8))
        self._seeds = [seed + number for number in range(len(self._tensors))]

    def lay(self, stream: int | None = None) -> None:
        """Poisons every band, on `stream` (a handle; torch's current one by default)."""
        for tensor, seed in zip(self._tensors, self._seeds, strict=True):
            poison(tensor, seed, stream)

    def broken(self, stream: int | None = None) -> list[Overrun]:
        """The bands that changed since `lay`, after the work queued on `stream`; waits for that stream only."""
        found = []
        for (slot, side), tensor, hurt in zip(
            self._halves, self._tensors, damage(self._tensors, self._seeds, stream), strict=True
        ):
            if hurt is not None:
                reach = hurt.last + 1 if side == "end" else tensor.numel() - hurt.first
                found.append(Overrun(slot, side, hurt.bytes, reach))
        return found
