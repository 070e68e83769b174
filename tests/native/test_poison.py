"""Poison is NaN for every float, improbable or malformed for the rest, exact to the byte, and tells what is written."""

import pytest
import torch
from reference_comparison import ALL, COMPLEX, FLOATS, wide

from utils.native.poison import count_poison, damage, poison


def poisoned(size, dtype, device, seed):
    tensor = torch.zeros(size, dtype=dtype, device=device)
    poison(tensor, seed)
    return tensor


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
def test_floats_are_nan(device, dtype):
    assert wide(poisoned(1000, dtype, device, 1)).isnan().all()


def test_wide_poison_is_nan_whatever_it_is_read_as(device):
    raw = poisoned(512, torch.float64, device, 2).cpu()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64, torch.complex128):
        assert wide(raw.view(dtype)).isnan().all()
    halves = raw.view(torch.int16)
    assert int(halves.min()) >= 0x7FF1 and int(halves.max()) <= 0x7FFE


def test_integers_are_improbable(device):
    assert int(poisoned(100, torch.int32, device, 3).min()) > 2**30
    assert int(poisoned(100, torch.int64, device, 3).min()) > 2**62
    assert int(poisoned(1000, torch.bool, device, 3).view(torch.uint8).min()) > 1
    assert len(poisoned(10000, torch.uint8, device, 3).unique()) == 256


def test_the_seed_and_the_place_decide(device):
    one = poisoned(64, torch.int64, device, 10)
    assert torch.equal(one, poisoned(64, torch.int64, device, 10))
    other = poisoned(64, torch.int64, device, 11)
    assert len(torch.cat([one, other]).unique()) > 120


def test_the_same_poison_on_every_device(device):
    here = poisoned(1001, torch.int8, device, 5).cpu()
    assert torch.equal(here, poisoned(1001, torch.int8, torch.device("cpu"), 5))


@pytest.mark.parametrize("offset", range(9))
@pytest.mark.parametrize("length", [0, 1, 3, 8, 31, 257])
def test_not_a_byte_beside(device, offset, length):
    room = torch.zeros(300, dtype=torch.uint8, device=device)
    poison(room[offset : offset + length], 6)
    aligned = poisoned(length, torch.uint8, device, 6)
    assert torch.equal(room[offset : offset + length], aligned)
    assert not room[:offset].any() and not room[offset + length :].any()


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_counting_what_is_left(device, dtype):
    tensor = poisoned((40, 50), dtype, device, 8)
    assert count_poison(tensor, 8) == 2000
    raw = tensor.view(torch.uint8)
    raw[:20] = 0
    assert count_poison(tensor, 8) == pytest.approx(1000, abs=10)
    if dtype.itemsize > 2:
        assert count_poison(tensor, 9) < 20


def test_counting_in_a_strided_tensor(device):
    room = torch.zeros(20, 30, device=device)
    view = room.t()[3:25:2, ::3]
    poison(view, 12)
    assert count_poison(view, 12) == view.numel()
    view[0, 0] = 1.0
    assert count_poison(view, 12) == view.numel() - 1
    assert count_poison(torch.empty(0, device=device), 12) == 0


def test_damage_names_first_and_last_byte(device):
    bands = [poisoned(n, torch.uint8, device, seed) for n, seed in ((100, 1), (5000, 2), (70000, 3), (1, 4))]
    seeds = [1, 2, 3, 4]
    assert damage(bands, seeds) == [None] * 4
    bands[1][17] ^= 1
    bands[1][4999] ^= 255
    bands[2][40000] ^= 4
    found = damage(bands, seeds)
    assert found[0] is None and found[3] is None
    assert (found[1].bytes, found[1].first, found[1].last) == (2, 17, 4999)
    assert (found[2].bytes, found[2].first, found[2].last) == (1, 40000, 40000)
    assert damage([], []) == []


def test_damage_of_very_many_spans(device):
    bands = [poisoned(16, torch.uint8, device, seed) for seed in range(1500)]
    bands[1400][3] ^= 1
    found = damage(bands, range(1500))
    assert [number for number, hurt in enumerate(found) if hurt] == [1400]
