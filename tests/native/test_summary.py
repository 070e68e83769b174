"""The summary of a tensor against torch's own reductions in fp64."""

import math

import pytest
import torch
from reference_comparison import ALL, wide

from utils.native.summary import summarise


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_against_torch(device, dtype):
    generator = torch.Generator().manual_seed(6)
    raw = torch.randint(0, 256, (700 * 31 * dtype.itemsize,), dtype=torch.uint8, generator=generator)
    tensor = ((raw & 1) if dtype is torch.bool else raw).view(dtype).reshape(700, 31)
    got = summarise(tensor.to(device))
    values = wide(tensor)
    finite = values[torch.isfinite(values)]
    # fp64 of any bits overflows when squared; everything else does not
    finite = finite.abs() if finite.is_complex() else finite
    assert (got.count, got.finite) == (700 * 31, finite.numel())
    assert got.nan == int(values.isnan().sum())
    assert got.inf == int((values.isinf() & ~values.isnan()).sum())
    assert got.least == pytest.approx(float(finite.min()), rel=1e-14)
    assert got.greatest == pytest.approx(float(finite.max()), rel=1e-14)
    rms = float((finite**2).mean().sqrt())
    assert got.rms == pytest.approx(rms, rel=1e-9)
    if math.isfinite(rms):
        assert got.mean == pytest.approx(float(finite.mean()), rel=1e-6, abs=1e-9 * rms)


def test_strides_and_large(device):
    tensor = torch.arange(1_000_000, dtype=torch.float64).reshape(1000, 1000)
    got = summarise(tensor.to(device).t()[::3, ::7])
    want = tensor.t()[::3, ::7]
    assert (got.least, got.greatest) == (float(want.min()), float(want.max()))
    assert got.mean == pytest.approx(float(want.mean())) and got.deviation == pytest.approx(
        float(want.std(correction=0))
    )
    assert summarise(torch.ones((), device=device).expand(50, 60)).count == 3000


def test_nothing_and_nothing_finite(device):
    for tensor in (torch.empty(0, 4, device=device), torch.full((3,), math.nan, device=device)):
        got = summarise(tensor)
        assert got.count == tensor.numel() and got.finite == 0
        assert all(math.isnan(x) for x in (got.least, got.greatest, got.mean, got.rms, got.deviation))
