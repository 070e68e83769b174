"""The one-pass comparison against the same thing written with torch, over every dtype, stride and kind of value."""

import math
import random

import pytest
import torch
from native_devices import on_gpu
from reference_comparison import ALL, COMPLEX, FLOATS, INTEGERS, UNSIGNED, compare_exactly, compare_widely, wide

from utils.native.compare import compare
from utils.native.poison import poison
from utils.present.outcome import CannotTell

GPU = "cuda:0"
TOLERANCES = [(1e-2, 1e-2), (0.0, 1e-3), (1e-4, 0.0), (0.0, 0.0), (1e-30, 1e-7), (0.5, 0.0)]


def random_bits(shape, dtype, rng):
    """Any bit pattern of the dtype: NaNs with payloads, infinities, subnormals and all."""
    count = math.prod(shape)
    data = bytearray(rng.randbytes(count * dtype.itemsize)) or bytearray(1)
    if dtype is torch.bool:
        data = bytearray(byte & 1 for byte in data)
    return torch.frombuffer(data, dtype=torch.uint8)[: count * dtype.itemsize].view(dtype).reshape(shape)


def ordinary(shape, dtype, rng):
    """Numbers of ordinary size, some of them zero."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    values = torch.where(torch.rand(shape, generator=generator) < 0.1, 0.0, values)
    if dtype in COMPLEX:
        other = torch.randn(shape, generator=generator, dtype=torch.float64)
        both = torch.complex(values, other)
        return both if dtype is torch.complex128 else both.to(torch.complex64).to(dtype)
    if dtype in FLOATS:
        return values.to(torch.float32).to(dtype) if dtype is not torch.float64 else values
    return random_bits(shape, dtype, rng)


def neighbour(tensor, rng):
    """`tensor` with the lowest bit of some elements flipped, and a few elements replaced by anything."""
    flat = tensor.contiguous().flatten()
    raw = flat.view(torch.uint8).clone() if flat.numel() else flat.clone()
    size = tensor.dtype.itemsize
    for element in range(flat.numel()):
        fate = rng.random()
        if fate < 0.3:
            raw[element * size] ^= 1
        elif fate < 0.32:
            raw[element * size : (element + 1) * size] = random_bits((1,), tensor.dtype, rng).view(torch.uint8)
    return raw.view(tensor.dtype).reshape(tensor.shape)


def restrided(tensor, rng, device):
    """The same elements in other memory: permuted, spread out, or at an odd place."""
    way = rng.choice(["contiguous", "permuted", "spread", "shifted"])
    size, base = tuple(tensor.shape), 0
    if way == "permuted":
        order = rng.sample(range(len(size)), len(size))
    else:
        order = range(len(size))
    stride, step = [0] * len(size), rng.choice([2, 3]) if way == "spread" else 1
    for d in reversed(order):
        stride[d] = step
        step *= size[d] * (rng.choice([1, 2]) if way == "spread" else 1)
    if way == "shifted":
        base = 1
    # Laid out on the CPU and moved as bytes: not every dtype can be copied with strides on the GPU.
    room = torch.zeros((base + step + 3) * tensor.itemsize, dtype=torch.uint8)
    room.view(tensor.dtype).as_strided(size, stride, base).copy_(tensor)
    return room.to(device).view(tensor.dtype).as_strided(size, stride, base)


def check(expected, actual, atol, rtol):
    got = compare(expected, actual, atol, rtol)
    want = compare_widely(expected, actual, atol, rtol)
    # hypot differs by a rounding between libraries; real numbers agree to the last bit
    exact = expected.dtype not in COMPLEX
    for name in ("finite", "nan_expected", "nan_actual", "inf_expected", "inf_actual", "nonfinite_mismatch"):
        assert getattr(got, name) == want[name], name
    if exact:
        assert got.failing == want["failing"]
    for name in ("max_abs", "max_rel", "worst_ratio", "peak"):
        assert getattr(got, name) == pytest.approx(want[name], rel=0 if exact else 1e-14, abs=0), name
    for name in ("atol_needed", "rtol_needed"):
        assert getattr(got, name) == pytest.approx(want[name], rel=1e-9, abs=0 if exact else 1e-15), name
    for name in ("sum_error2", "sum_expected2", "sum_actual2"):
        assert getattr(got, name) == pytest.approx(want[name], rel=1e-9, abs=1e-300, nan_ok=True), name
    scale = math.sqrt(want["sum_expected2"]) * math.sqrt(want["sum_actual2"])
    if math.isfinite(scale):
        assert got.sum_product == pytest.approx(want["sum_product"], rel=1e-9, abs=1e-9 * scale)

    assert (got.worst_index is None) == (want["worst_ratio"] == 0)
    if got.worst_index is not None:
        assert float(want["ratio"][got.worst_index]) == pytest.approx(want["worst_ratio"], rel=0 if exact else 1e-14)
        for shown, tensor in ((got.worst_expected, expected), (got.worst_actual, actual)):
            there = wide(tensor)[got.worst_index].item()
            assert shown == there or (shown != shown and there != there)
    if got.failing and exact:
        places = (~want["close"]).nonzero()
        assert len(got.clusters) == expected.ndim
        for d, extent in enumerate(got.clusters):
            along = places[:, d]
            bins = [0] * 16
            for index in along.tolist():
                bins[int(index * 16 / extent.size)] += 1
            assert (extent.first, extent.last, list(extent.bins)) == (int(along.min()), int(along.max()), bins)
    for passing in ({"atol": got.atol_needed, "rtol": rtol}, {"atol": atol, "rtol": got.rtol_needed}):
        if all(map(math.isfinite, passing.values())):
            assert compare(expected, actual, **passing).passed


SHAPES = [(), (1,), (7,), (33, 5), (2, 3, 4), (1, 16, 1, 9), (2, 1, 3, 2, 5), (70, 61)]


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX, ids=str)
def test_any_values_any_strides(device, dtype):
    rng = random.Random(str(dtype))
    for round_, shape in enumerate(SHAPES * 3):
        make = random_bits if round_ % 2 else ordinary
        expected = make(shape, dtype, rng)
        actual = neighbour(expected, rng)
        check(restrided(expected, rng, device), restrided(actual, rng, device), *rng.choice(TOLERANCES))


@pytest.mark.parametrize("dtype", [*INTEGERS, *UNSIGNED, torch.bool], ids=str)
def test_integers_are_exact(device, dtype):
    rng = random.Random(str(dtype))
    for shape in SHAPES * 2:
        expected = random_bits(shape, dtype, rng)
        actual = expected.clone() if dtype is torch.bool else neighbour(expected, rng)
        if dtype is torch.bool and expected.numel() > 3:
            actual.view(-1)[3] = ~actual.view(-1)[3]
        got = compare(restrided(expected, rng, device), restrided(actual, rng, device), 1e-2, 1e-2)
        failing, largest = compare_exactly(expected, actual)
        assert (got.failing, got.max_abs) == (failing, largest)
        assert (got.atol, got.rtol) == (0.0, 0.0)
        assert got.worst_index == got.max_abs_index
        total = math.fsum(float(x) ** 2 for x in expected.flatten().tolist())
        assert got.sum_expected2 == pytest.approx(total, rel=1e-9)
        assert got.peak == max((abs(float(x)) for x in expected.flatten().tolist()), default=0.0)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_large_contiguous(device, dtype):
    """Enough elements for several chunks or blocks and a ragged end; two differences planted."""
    rng = random.Random(1)
    count = 600_011
    block = ordinary((7919,), dtype, rng)
    expected = block.view(torch.uint8).repeat(76).view(dtype)[:count].contiguous().to(device)
    assert compare(expected, expected.clone(), 0.0, 0.0).passed
    actual = expected.clone()
    one = torch.ones((), dtype=torch.float32).to(dtype) if dtype not in COMPLEX else torch.tensor(1.0 + 0j).to(dtype)
    for place in (300_001, count - 1):
        raw = actual[place : place + 1].view(torch.uint8)
        other = one.reshape(1).view(torch.uint8).to(device)
        raw.copy_(other if not torch.equal(raw, other) else torch.zeros_like(raw))
    got = compare(expected, actual, 0.0, 0.0)
    assert 1 <= got.failing <= 2
    assert got.clusters[0].last == count - 1
    assert got.worst_index[0] in (300_001, count - 1)
    assert got.sum_expected2 == pytest.approx(float((wide(expected).abs() ** 2).sum()), rel=1e-9)
    again = compare(expected, actual, 0.0, 0.0)
    assert again == got


def test_errors_of_every_size_in_a_large_tensor(device):
    """The records are broken late and early, in all five senses at once, on vector and ragged parts alike."""
    generator = torch.Generator().manual_seed(5)
    expected = torch.randn(500_003, generator=generator) * torch.logspace(-6, 3, 500_003)
    noise = torch.randn(500_003, generator=generator) * torch.logspace(-9, -3, 500_003)[torch.randperm(500_003)]
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        e, a = expected.to(dtype), (expected + noise).to(dtype)
        for atol, rtol in TOLERANCES:
            check(e.to(device), a.to(device), atol, rtol)


def test_complex_errors_in_every_direction(device):
    """The fast look estimates moduli; none of its estimates may hide the largest, wherever it points."""
    generator = torch.Generator().manual_seed(11)
    for dtype in (torch.complex64, torch.complex128):
        for _ in range(5):
            expected = torch.randn(40_009, dtype=dtype, generator=generator)
            noise = torch.polar(torch.ones(40_009), 7 * torch.rand(40_009, generator=generator)).to(dtype)
            size = 0.01 + 1e-4 * torch.rand(40_009, generator=generator)
            check(expected.to(device), (expected + size * noise).to(device), 1e-2, 1e-3)
            check(expected.to(device), (expected * (1 + size * noise)).to(device), 0.0, 1e-2)


def test_the_smallest_passing_tolerances_pass(device):
    """As evaluated, not as computed: a needed atol rounded down by one bit would fail by that bit."""
    rng = random.Random(12)
    for _ in range(300):
        expected = torch.tensor([rng.gauss(0, 1) * 10 ** rng.randrange(-3, 3)], dtype=torch.float64, device=device)
        actual = expected + rng.gauss(0, 1)
        rtol, atol = rng.random() * 1e-2, rng.random() * 1e-3
        got = compare(expected, actual, atol, rtol)
        assert compare(expected, actual, got.atol_needed, rtol).passed
        assert compare(expected, actual, atol, got.rtol_needed).passed
        if got.atol_needed > 0:
            assert not compare(expected, actual, got.atol_needed * (1 - 1e-9), rtol).passed
        if got.rtol_needed > 0:
            assert not compare(expected, actual, atol, got.rtol_needed * (1 - 1e-9)).passed


def test_a_needed_atol_that_rounds_down_to_a_tie(device):
    """error - rtol m and the sum with rtol m both fall between two doubles here, and both to the even side."""
    expected = torch.tensor([1.0], dtype=torch.float64, device=device)
    actual = torch.tensor([-(2.0**-52)], dtype=torch.float64, device=device)
    got = compare(expected, actual, 0, 2.0**-53)
    assert compare(expected, actual, got.atol_needed, 2.0**-53).passed


def test_the_first_of_equals_is_named(device):
    """Thousands of elements share the worst error; whichever thread meets one first, the answer is the same."""
    generator = torch.Generator().manual_seed(8)
    expected = torch.randint(1, 4, (300_000,), generator=generator).to(torch.bfloat16)
    actual = expected + torch.randint(0, 3, expected.shape, generator=generator).to(torch.bfloat16) / 64
    want = compare_widely(expected, actual, 0.25, 0.25)
    first = int((want["ratio"] == want["worst_ratio"]).nonzero()[0])
    largest = (expected.double() - actual.double()).abs()
    got = [compare(expected.to(device), actual.to(device), 0.25, 0.25) for _ in range(5)]
    assert got[0].worst_index == (first,)
    assert got[0].max_abs_index == (int((largest == largest.max()).nonzero()[0]),)
    assert all(again == got[0] for again in got)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_edge_of_the_tolerance(device, dtype):
    expected = torch.tensor([4.0, -4.0, 0.0, 8.0], dtype=dtype, device=device)
    at = expected + torch.tensor([0.5, -0.5, 0.5, 0.5], dtype=dtype, device=device)
    assert compare(expected, at, 0.5, 0.0).passed
    assert compare(expected, at, 0.25, 0.0625).failing == 1  # 0 has no relative part
    just_below = math.nextafter(0.5, 0)
    assert compare(expected, at, just_below, 0.0).failing == 4
    got = compare(expected, at, 0.0, 0.0)
    assert got.atol_needed == 0.5 and got.rtol_needed == math.inf and got.max_rel == math.inf


def test_nan_and_inf_must_match_in_place_and_sign(device):
    inf, nan = math.inf, math.nan
    expected = torch.tensor([nan, inf, -inf, 1.0, nan, inf, 2.0, -inf], device=device)
    actual = torch.tensor([nan, inf, -inf, 1.0, 1.0, -inf, nan, 3.0], device=device)
    got = compare(expected, actual, 1e9, 1e9)
    assert (got.failing, got.nonfinite_mismatch, got.finite) == (4, 4, 1)
    assert (got.nan_expected, got.nan_actual, got.inf_expected, got.inf_actual) == (2, 2, 4, 3)
    assert got.worst_ratio == got.atol_needed == got.rtol_needed == inf
    assert got.worst_index == (4,)
    assert got.max_abs == 0.0
    assert compare(expected, expected.clone(), 0.0, 0.0).passed


def test_int64_beyond_the_precision_of_double(device):
    expected = torch.tensor([2**62, -(2**63), 5], device=device)
    actual = torch.tensor([2**62 + 1, 2**63 - 1, 5], device=device)
    got = compare(expected, actual, 1.0, 1.0)
    assert got.failing == 2
    assert got.max_abs == float(2**64 - 1)
    assert (got.worst_expected, got.worst_actual) == (-(2**63), 2**63 - 1)


def test_malformed_bool_is_a_difference(device):
    expected = torch.tensor([True, False], device=device)
    actual = torch.tensor([255, 0], dtype=torch.uint8, device=device).view(torch.bool)
    got = compare(expected, actual, 0, 0)
    assert got.failing == 1 and got.worst_actual == 255 and got.worst_expected is True


def test_constants_without_materialising(device):
    """Trivial answers are compared as expanded views: a scalar, one value a channel, the reference itself repeated."""
    generator = torch.Generator().manual_seed(2)
    expected = torch.randn(3, 5, 17, 4, generator=generator).to(device)
    scalar = torch.zeros((), device=device).expand(expected.shape)
    channel = expected.mean(dim=(0, 2, 3)).reshape(1, 5, 1, 1).expand(expected.shape)
    for trivial in (scalar, channel):
        check(expected, trivial, 1e-2, 1e-2)
        check(trivial, expected, 1e-2, 1e-2)
    assert compare(expected, scalar, 10.0, 0.0).passed


def test_an_fp64_reference_beside_an_fp32_output(device):
    generator = torch.Generator().manual_seed(3)
    expected = torch.randn(37, 41, dtype=torch.float64, generator=generator).to(device)
    actual = expected.to(torch.float32)
    with pytest.raises(ValueError, match="dtypes differ"):
        compare(expected, actual, 0, 0)
    got = compare(expected, actual, 0, 2.0**-24, strict=False)
    assert got.passed and 0 < got.relative_rms < 2.0**-24
    want = compare_widely(expected, actual, 0, 1e-9)
    got = compare(expected, actual, 0, 1e-9, strict=False)
    assert (got.failing, got.max_abs) == (want["failing"], want["max_abs"])
    whole = torch.arange(5, device=device)
    assert compare(whole, whole.float() + 0.25, 0.25, 0, strict=False).passed


def test_conjugated_and_negated_views(device):
    z = torch.tensor([1 + 2j, 3 - 4j], device=device)
    assert compare(z.conj(), z.conj().clone(), 0, 0).passed
    assert compare(z, z.conj(), 0, 0).max_abs == 8.0
    assert compare(z.conj().imag, -z.imag, 0, 0).passed


def test_gradients_do_not_matter(device):
    x = torch.ones(3, device=device, requires_grad=True)
    assert compare(x, x * 1, 0, 0).passed


def test_empty_and_scalar(device):
    empty = torch.empty(0, 3, device=device)
    got = compare(empty, empty.clone(), 0, 0)
    assert got.passed and got.count == 0 and got.worst_index is None and got.rms_error == 0 and got.relative_rms == 0
    got = compare(torch.tensor(1.0, device=device), torch.tensor(2.0, device=device), 0, 0)
    assert got.worst_index == () and got.clusters == () and got.where() == "a scalar"


def test_scale_aware_measures(device):
    expected = torch.tensor([3.0, 4.0], device=device)
    got = compare(expected, torch.tensor([3.0, 4.5], device=device), 1, 0)
    assert got.rms_error == pytest.approx(math.sqrt(0.125))
    assert got.rms_expected == pytest.approx(math.sqrt(12.5))
    assert got.relative_rms == pytest.approx(0.1)
    assert got.max_abs_over_rms == pytest.approx(0.5 / math.sqrt(12.5))
    assert compare(expected, 2 * expected, 0, 0).cosine == pytest.approx(1)
    zero = torch.zeros_like(expected)
    assert compare(zero, expected, 0, 0).relative_rms == math.inf
    assert compare(zero, zero.clone(), 0, 0).cosine == 1


def test_where_failures_cluster(device):
    expected = torch.zeros(256, 64, device=device)
    actual = expected.clone()
    actual[96:128, :] = 1
    assert compare(expected, actual, 0, 0).where() == "dim 0 in 96..127 of 256, all of dim 1"
    actual = expected.clone()
    actual[:, 63] = 1
    assert compare(expected, actual, 0, 0).where() == "all of dim 0, dim 1 at 63 of 64"
    actual = expected.t().contiguous().t()
    actual[5, 3:20] = 1
    assert compare(expected, actual, 0, 0).where() == "dim 0 at 5 of 256, dim 1 in 3..19 of 64"
    assert compare(expected, actual, 0, 0, locate=False).clusters is None


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_what_was_never_written(device, dtype):
    rng = random.Random(9)
    expected = ordinary((64, 32), dtype, rng).to(device)
    actual = torch.empty_like(expected)
    poison(actual, 1234)
    got = compare(expected, actual, 1e9, 1e9, poison_seed=1234)
    # one-byte integers and bools may meet their poison by chance
    assert got.unwritten == got.failing >= (1950 if dtype.itemsize == 1 else 2048)
    half = actual.view(torch.uint8)[:32]
    half.copy_(expected.view(torch.uint8)[:32])
    got = compare(expected, actual, 1e9, 1e9, poison_seed=1234)
    assert got.unwritten == got.failing and 900 < got.unwritten <= 1024
    assert (got.clusters[0].first, got.clusters[0].last) == (32, 63)
    if dtype.itemsize > 1:
        # of another seed: 16 bits have 14 values to choose from, wider elements meet by chance next to never
        most = {2: 200, 4: 20}.get(dtype.itemsize, 0)
        assert compare(expected, actual, 1e9, 1e9, poison_seed=1235).unwritten <= most
    assert compare(expected, expected.clone(), 0, 0, poison_seed=1234).passed


def test_unwritten_where_the_reference_is_nan(device):
    expected = torch.full((100,), math.nan, device=device)
    actual = torch.empty_like(expected)
    poison(actual, 7)
    assert compare(expected, actual, 0, 0).passed
    got = compare(expected, actual, 0, 0, poison_seed=7)
    assert got.unwritten == got.failing == 100 and got.worst_index == (0,)
    assert compare(expected, torch.full_like(expected, math.nan), 0, 0, poison_seed=7).passed


def test_refusals(device):
    x = torch.zeros(2, 3, device=device)
    with pytest.raises(ValueError, match="shapes differ"):
        compare(x, x.t(), 0, 0)
    for atol, rtol in ((-1, 0), (0, math.nan), (math.inf, 0)):
        with pytest.raises(ValueError, match="tolerances"):
            compare(x, x, atol, rtol)
    with pytest.raises(CannotTell, match="sparse"):
        compare(x.to_sparse(), x.to_sparse(), 0, 0)
    with pytest.raises(CannotTell, match="qint8"):
        q = torch.quantize_per_tensor(torch.zeros(4), 0.1, 0, torch.qint8)
        compare(q, q, 0, 0)
    with pytest.raises(CannotTell, match="meta"):
        compare(x.to("meta"), x.to("meta"), 0, 0)


@pytest.mark.slow
def test_more_than_2_31_elements():
    rows = 2**31 // 4096 + 3
    expected = torch.zeros(4096, dtype=torch.uint8).expand(rows, 4096)
    actual = torch.zeros(4096, dtype=torch.uint8)
    actual[4095] = 9
    got = compare(expected, actual.expand(rows, 4096), 0, 0, locate=False)
    assert got.count > 2**31 and got.failing == rows and got.worst_index == (0, 4095)
    assert got.sum_actual2 == 81.0 * rows


@on_gpu
def test_more_than_2_31_elements_on_the_gpu():
    count = 2**31 + 8
    expected = torch.zeros(count, dtype=torch.uint8, device=GPU)
    actual = expected.clone()
    assert compare(expected, actual, 0, 0).passed
    actual[-1] = 255
    got = compare(expected, actual, 0, 0)
    assert got.failing == 1 and got.worst_index == (count - 1,) and got.worst_actual == 255
    strided = compare(expected.view(-1, 4).t(), actual.view(-1, 4).t(), 0, 0)
    assert strided.failing == 1 and strided.worst_index == (3, count // 4 - 1)


@on_gpu
def test_a_misaligned_view_on_the_gpu():
    """Both paths of the GPU see the same numbers: 16-byte loads, and the walk that serves every other address."""
    generator = torch.Generator().manual_seed(4)
    expected, noise = torch.randn(100_001, generator=generator), torch.randn(100_001, generator=generator)
    e, a = expected.to(GPU), (expected + 0.01 * noise).to(GPU)
    one, other = compare(e[1:], a[1:], 1e-2, 1e-2), compare(e[1:].clone(), a[1:].clone(), 1e-2, 1e-2)
    for name in ("failing", "worst_index", "max_abs", "max_rel", "atol_needed", "rtol_needed", "peak", "clusters"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.sum_error2 == pytest.approx(other.sum_error2, rel=1e-12)
