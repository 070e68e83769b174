"""Slots with guard bands: every placement as asked, every overrun laid to the right slot and side."""

import itertools

import pytest
import torch

from utils.native.arena import Arena
from utils.native.layout import GUARD, Guards, Request, place

REQUESTS = [
    Request((3, 4), (4, 1), torch.float32),
    Request((7,), (1,), torch.bfloat16, misalign=2),
    Request((0, 5), (5, 1), torch.int64),
    Request((), (), torch.complex64, align=16, misalign=8),
    Request((5, 6), (0, 1), torch.int8),
    Request((2, 3), (1, 2), torch.float64),
]


def test_places_as_asked():
    layout = place(REQUESTS)
    end = 0
    for request, slot in zip(REQUESTS, layout.slots, strict=True):
        assert (slot.size, slot.stride, slot.dtype) == (request.size, request.stride, request.dtype)
        if slot.nbytes:
            assert slot.offset % request.align == request.misalign
            assert slot.offset >= end + GUARD
            end = slot.end
    assert [slot.nbytes for slot in layout.slots] == [48, 14, 0, 8, 6, 48]
    assert layout.nbytes == end + GUARD
    # the bands and the slots fill the arena without gap or overlap
    pieces = sorted([*layout.bands, *((s.offset, s.nbytes) for s in layout.slots if s.nbytes)])
    assert pieces[0][0] == 0
    assert all(a + n == b for (a, n), (b, _) in itertools.pairwise(pieces))


def test_refuses_a_placement_no_kernel_could_read():
    with pytest.raises(ValueError, match="misalign"):
        place([Request((1,), (1,), torch.float32, misalign=2)])
    with pytest.raises(ValueError, match="misalign"):
        place([Request((1,), (1,), torch.int8, align=16, misalign=16)])


def test_an_empty_layout(device):
    layout = place([Request((0,), (1,), torch.float32)])
    with Arena.create(layout.nbytes, device) as arena:
        guards = Guards(arena, layout, 1)
        guards.lay()
        assert guards.broken() == []
        assert layout.slots[0].tensor(arena).numel() == 0


@pytest.fixture
def guarded(device):
    layout = place(REQUESTS)
    with Arena.create(layout.nbytes, device) as arena:
        guards = Guards(arena, layout, 99)
        guards.lay()
        yield arena, layout, guards


def test_writing_the_slots_breaks_nothing(guarded):
    arena, layout, guards = guarded
    for slot in layout.slots:
        if slot.nbytes:
            arena.tensor(slot.offset, (slot.nbytes,), (1,), torch.uint8).fill_(1)
    assert guards.broken() == []


@pytest.mark.parametrize("number", [0, 1, 3, 4, 5])
@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("distance", [1, 4, 1000, GUARD])
def test_one_byte_beside_a_slot(guarded, number, side, distance):
    arena, layout, guards = guarded
    slot = layout.slots[number]
    at = slot.end + distance - 1 if side == "end" else slot.offset - distance
    byte = arena.tensor(at, (1,), (1,), torch.uint8)
    byte ^= 255
    (found,) = guards.broken()
    assert (found.slot, found.side, found.nbytes, found.reach) == (number, side, 1, distance)
    assert str(found).startswith("1 bytes")
    guards.lay()
    assert guards.broken() == []


def test_several_overruns_at_once(guarded):
    arena, layout, guards = guarded
    arena.tensor(layout.slots[0].end, (40,), (1,), torch.uint8).fill_(0)
    arena.tensor(layout.slots[5].end, (8,), (1,), torch.uint8).fill_(0)
    assert [(o.slot, o.side) for o in guards.broken()] == [(0, "end"), (5, "end")]
