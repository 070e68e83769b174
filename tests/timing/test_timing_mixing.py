"""Inputs that change before every timed call: new, of the same make, and never twice."""

import pytest
import torch

from utils.timing.mixing import Mixed

DTYPES = [torch.float32, torch.bfloat16, torch.float64, torch.complex128, torch.int64, torch.uint8, torch.bool]


def made(dtype, seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(shape, generator=generator) * 200).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_element_comes_from_one_of_the_draws_at_its_place(dtype):
    one, two = torch.zeros(64, 8).to(dtype), torch.ones(64, 8).to(dtype)
    mixed = Mixed([one], [two])
    mixed.renew(5)
    (value,) = mixed.values
    assert value.dtype == dtype
    ones = int((value == two).sum())
    assert ones + int((value == one).sum()) == 512
    assert 150 < ones < 362


def test_no_two_are_alike_and_neither_are_their_rows():
    mixed = Mixed([torch.randn(32, 64)], [torch.randn(32, 64)])
    rows = set()
    for seed in range(40):
        mixed.renew(seed * 7919)
        rows |= {tuple(row.tolist()) for row in mixed.values[0]}
    assert len(rows) == 40 * 32


def test_a_seed_brings_the_same_values_again_and_addresses_stay():
    mixed = Mixed([torch.randn(1000), torch.randn(10)], None)
    address = mixed.values[0].data_ptr()
    mixed.renew(1 << 61)
    before = [value.clone() for value in mixed.values]
    mixed.renew(17)
    assert not torch.equal(before[0], mixed.values[0])
    mixed.renew(1 << 61)
    assert all(map(torch.equal, before, mixed.values))
    assert mixed.values[0].data_ptr() == address


def test_of_one_draw_values_stay_in_their_columns():
    first = torch.arange(40)[:, None] * 0 + torch.arange(5) * 100 + torch.randint(0, 9, (40, 5))
    mixed = Mixed([first], None)
    seen = set()
    for seed in range(1000, 1030):
        mixed.renew(seed)
        assert torch.equal(mixed.values[0] // 100, first // 100)
        seen.add(tuple(mixed.values[0].flatten().tolist()))
    assert len(seen) == 30


def test_shared_memory_strides_and_overlaps_stay():
    def draw(seed):
        base = made(torch.float32, seed, 12, 10)
        return [base, base[3:6], base.t(), made(torch.float32, seed + 1, 7, 1).expand(7, 9)]

    mixed = Mixed(draw(1), draw(10))
    for seed in (3, 4):
        mixed.renew(seed)
        base, rows, turned, wide = mixed.values
        assert torch.equal(rows, base[3:6])
        assert torch.equal(turned, base.t())
        assert wide.stride() == (1, 0)
        assert torch.equal(wide, wide[:, :1].expand(7, 9))


def test_draws_of_other_shapes_and_empty_inputs_do_no_harm():
    mixed = Mixed([torch.randn(20), torch.empty(0), 3], [torch.randn(30), torch.empty(0), 4])
    mixed.renew(9)
    assert mixed.values[0].shape == (20,)
    assert mixed.values[2] == 3


def test_whole_draws_where_a_problem_needs_them():
    first, second = torch.randn(50), torch.randn(50)
    mixed = Mixed([first], [second])
    mixed.whole = True
    seen = set()
    for seed in range(8):
        mixed.renew(seed)
        assert torch.equal(mixed.values[0], first) or torch.equal(mixed.values[0], second)
        seen.add(mixed.values[0][0].item())
    assert len(seen) == 2


def test_pieces_change_nothing_but_the_size_of_the_mask(monkeypatch):
    monkeypatch.setattr("utils.timing.mixing._PIECE", 64)
    first = torch.arange(1000.0)
    for second in (None, -first):
        mixed = Mixed([first], None if second is None else [second])
        mixed.renew(12345)
        assert set(mixed.values[0].abs().tolist()) <= set(first.tolist())
        assert 300 < int((mixed.values[0] == first).sum()) < 700
