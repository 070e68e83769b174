"""One pass over two tensors that yields everything the judge says about their difference.

Per element |expected - actual| <= atol + rtol * |expected|, evaluated in double as torch.isclose does; complex numbers
by the modulus; NaN must meet NaN, Inf the same Inf. Integers and bools must be equal. Nothing of the tensors' size is
allocated, strides may be any (0 as well), and elements may number more than 2**31.
"""

from __future__ import annotations

import ctypes
import functools
import math
from ctypes import c_double, c_int32, c_int64, c_uint64
from dataclasses import dataclass
from typing import Any

import torch

from utils.native import library
from utils.native import poison as poisoning
from utils.native.summary import RawSummary
from utils.native.tensors import (
    MAX_DIMS,
    Walk,
    device_number,
    dtype_code,
    index_of,
    is_exact,
    make_walk,
    plain,
    require_aligned,
    require_strided,
    stream_handle,
    visiting_order,
)

BINS = 16


class _Rule(ctypes.Structure):
    _fields_ = [
        ("atol", c_double),
        ("rtol", c_double),
        ("poison_seed", c_uint64),
        ("poison", c_int32),
        ("reserved", c_int32),
    ]


class _Tally(ctypes.Structure):
    _fields_ = [
        *[
            (name, c_int64)
            for name in ("failing", "finite", "nan_expected", "nan_actual", "inf_expected", "inf_actual")
        ],
        *[(name, c_int64) for name in ("nonfinite_mismatch", "unwritten", "worst_at", "max_abs_at")],
        *[
            (name, c_double)
            for name in ("worst_ratio", "worst_error", "max_abs", "max_rel", "atol_needed", "rtol_needed")
        ],
        *[(name, c_double) for name in ("peak", "sum_error2", "sum_expected2", "sum_actual2", "sum_product")],
        ("worst_expected", c_uint64 * 2),
        ("worst_actual", c_uint64 * 2),
    ]


class _Clusters(ctypes.Structure):
    _fields_ = [
        ("failing", c_int64),
        ("first", c_int64 * MAX_DIMS),
        ("last", c_int64 * MAX_DIMS),
        ("bins", (c_int64 * BINS) * MAX_DIMS),
    ]


@dataclass(frozen=True)
class Extent:
    """Where the failing elements lie along one dimension of `size`: from `first` to `last`, and how many in each of 16
    equal parts of the dimension (index i in part floor(i / size * 16))."""

    size: int
    first: int
    last: int
    bins: tuple[int, ...]

    @property
    def occupied(self) -> int:
        """Parts that hold a failing element."""
        return sum(count > 0 for count in self.bins)

    @property
    def everywhere(self) -> bool:
        """Failures in all parts of the dimension that can hold an element."""
        return self.occupied == min(self.size, BINS)


@dataclass(frozen=True)
class Comparison:
    """The outcome. Errors, norms and sums are over the `finite` pairs, those finite on both sides.

    Indices are tuples into the tensors' own dimensions, None where every element is equal (or none is finite).
    """

    count: int
    atol: float
    """As used: 0 for integers and bools, which must be equal."""
    rtol: float
    failing: int
    finite: int
    nan_expected: int
    nan_actual: int
    inf_expected: int
    inf_actual: int
    nonfinite_mismatch: int
    """NaN or Inf on one side only, or infinities of other signs."""
    unwritten: int
    """Elements that still hold the poison; known only when `poison_seed` was given. Counted among the failing."""
    worst_ratio: float
    """The worst element's error over its tolerance; inf for a NaN/Inf mismatch; the plain error when both are 0."""
    worst_index: tuple[int, ...] | None
    worst_expected: Any
    """Value there, as tensor.item() gives it."""
    worst_actual: Any
    max_abs: float
    max_abs_index: tuple[int, ...] | None
    max_rel: float
    """Largest |expected - actual| / |expected|; inf where expected is 0 and actual is not."""
    atol_needed: float
    """Smallest atol that passes at the given rtol; inf where none does."""
    rtol_needed: float
    """Smallest rtol that passes at the given atol; inf where none does."""
    peak: float
    """Largest |expected|."""
    sum_error2: float
    sum_expected2: float
    sum_actual2: float
    sum_product: float
    """Real part of the inner product of expected and actual."""
    clusters: tuple[Extent, ...] | None
    """Where the failing elements lie, one Extent a dimension; None when none fails or it was not asked for."""

    @property
    def passed(self) -> bool:
        return self.failing == 0

    @property
    def rms_error(self) -> float:
        return math.sqrt(self.sum_error2 / self.finite) if self.finite else 0.0

    @property
    def rms_expected(self) -> float:
        return math.sqrt(self.sum_expected2 / self.finite) if self.finite else 0.0

    @property
    def rms_actual(self) -> float:
        return math.sqrt(self.sum_actual2 / self.finite) if self.finite else 0.0

    @property
    def relative_rms(self) -> float:
        """Norm of the error over the norm of the expected: the scale-aware error. 0 when both are 0."""
        if self.sum_error2 == 0:
            return 0.0
        return math.sqrt(self.sum_error2 / self.sum_expected2) if self.sum_expected2 else math.inf

    @property
    def max_abs_over_rms(self) -> float:
        """Largest error over the expected's own rms. 0 when both are 0."""
        if self.max_abs == 0:
            return 0.0
        return self.max_abs / self.rms_expected if self.rms_expected else math.inf

    @property
    def cosine(self) -> float:
        """Cosine of the angle between expected and actual; 1 when both are 0, 0 when one of them is."""
        if self.sum_expected2 == 0 and self.sum_actual2 == 0:
            return 1.0
        scale = math.sqrt(self.sum_expected2) * math.sqrt(self.sum_actual2)
        return self.sum_product / scale if scale else 0.0

    def where(self) -> str:
        """Where the failing elements cluster, in words: "dim 0 from 96 to 127 of 128, all of dim 1"."""
        if not self.clusters:
            return "a scalar" if self.failing and self.clusters is not None else ""
        words = []
        for number, extent in enumerate(self.clusters):
            if extent.size == 1:
                continue
            if extent.first == extent.last:
                words.append(f"dim {number} at {extent.first} of {extent.size}")
            elif extent.first == 0 and extent.last == extent.size - 1 and extent.everywhere:
                words.append(f"all of dim {number}")
            elif extent.occupied <= BINS // 2 and extent.size > BINS:
                words.append(f"dim {number} in {_parts(extent)} of {extent.size}")
            else:
                words.append(f"dim {number} from {extent.first} to {extent.last} of {extent.size}")
        return ", ".join(words) or "the only element"


def _parts(extent: Extent) -> str:
    """The occupied parts of a dimension as index ranges, neighbours joined: "0..7 and 64..71"."""
    ranges: list[list[int]] = []
    for part, count in enumerate(extent.bins):
        if not count:
            continue
        begin = -(-part * extent.size // BINS)
        end = -(-(part + 1) * extent.size // BINS) - 1
        if ranges and ranges[-1][1] == begin - 1:
            ranges[-1][1] = end
        else:
            ranges.append([begin, end])
    ranges[0][0], ranges[-1][1] = max(ranges[0][0], extent.first), min(ranges[-1][1], extent.last)
    return " and ".join(f"{first}..{last}" for first, last in ranges)


@functools.cache
def _check_abi() -> None:
    structs = (Walk, _Rule, _Tally, _Clusters, poisoning.Span, poisoning.RawDamage, RawSummary)
    sizes = (c_int64 * len(structs))()
    library.load().native_abi(ctypes.byref(sizes))
    ours = [ctypes.sizeof(struct) for struct in structs]
    if list(sizes) != ours:
        raise library.NativeError(-1, f"the native library's structs {list(sizes)} are not those of this Python {ours}")


def _native(
    operation: str, device: torch.device, stream: int, walk: Walk, rule: _Rule, result: ctypes.Structure
) -> None:
    tail = (ctypes.byref(walk), ctypes.byref(rule), ctypes.byref(result))
    if device.type == "cuda":
        library.call(f"native_{operation}_cuda", device_number(device), stream, *tail)
    else:
        library.call(f"native_{operation}_cpu", *tail)


def _value(raw: Any, dtype: torch.dtype) -> Any:
    data = bytearray(raw)[: dtype.itemsize]
    if dtype is torch.bool and data[0] > 1:
        return int(data[0])  # a malformed bool is shown as the byte it is
    tensor = torch.frombuffer(data, dtype=torch.uint8).view(dtype)
    if dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    return tensor.item()


def compare(
    expected: torch.Tensor,
    actual: torch.Tensor,
    atol: float,
    rtol: float,
    *,
    strict: bool = True,
    poison_seed: int | None = None,
    locate: bool = True,
    stream: int | None = None,
) -> Comparison:
    """Compares two tensors of one shape and device, each read once; waits for the result on `stream` only.

    strict: equal dtypes are required; without it they may differ (an fp64 reference beside an fp32 output), and then
        integers too are compared as numbers under the tolerance.
    poison_seed: the seed of the poison laid under `actual` before it was written; tells what was never written.
    locate: on failure read both once more to say where the failing elements lie.
    stream: a CUDA stream handle; torch's current stream on the device by default.
    Raises ValueError when shapes, dtypes or devices do not fit or a tolerance is negative or not finite, CannotTell for
    layouts and dtypes that cannot be compared, NativeError when CUDA fails (an earlier illegal access shows here too).
    """
    require_strided(expected, "expected tensor")
    require_strided(actual, "actual tensor")
    if expected.shape != actual.shape:
        raise ValueError(f"shapes differ: expected {tuple(expected.shape)}, got {tuple(actual.shape)}")
    if strict and expected.dtype != actual.dtype:
        raise ValueError(f"dtypes differ: expected {expected.dtype}, got {actual.dtype}")
    if expected.device != actual.device:
        raise ValueError(f"devices differ: expected {expected.device}, got {actual.device}")
    if not (0 <= atol < math.inf and 0 <= rtol < math.inf):
        raise ValueError(f"tolerances must be finite and not negative: atol {atol}, rtol {rtol}")
    _check_abi()
    expected, actual = plain(expected), plain(actual)
    if is_exact(expected.dtype) and expected.dtype == actual.dtype:
        atol = rtol = 0.0
    for tensor, what in ((expected, "expected tensor"), (actual, "actual tensor")):
        dtype_code(tensor.dtype)
        require_aligned(tensor, what)

    tally = _Tally(worst_at=-1, max_abs_at=-1)
    clusters = None
    order = visiting_order(expected, actual)
    if expected.numel():
        rule = _Rule(atol=atol, rtol=rtol, poison=poisoning.NONE)
        if poison_seed is not None:
            rule.poison, rule.poison_seed = poisoning.kind_of(actual.dtype), poisoning.mixed_seed(poison_seed)
        handle = stream_handle(expected, stream) if expected.is_cuda else 0
        walk = make_walk(expected, actual, order, collapse=True)
        _native("compare", expected.device, handle, walk, rule, tally)
        if tally.failing and locate:
            clusters = _locate(expected, actual, order, rule, handle)

    size = tuple(expected.shape)
    worst = None if tally.worst_at < 0 else index_of(tally.worst_at, size, order)
    names = [field[0] for field in _Tally._fields_]
    copied = [name for name in names if not name.startswith("worst_") and name != "max_abs_at"]
    return Comparison(
        count=expected.numel(),
        atol=atol,
        rtol=rtol,
        worst_ratio=tally.worst_ratio,
        worst_index=worst,
        worst_expected=None if worst is None else _value(tally.worst_expected, expected.dtype),
        worst_actual=None if worst is None else _value(tally.worst_actual, actual.dtype),
        max_abs_index=None if tally.max_abs_at < 0 else index_of(tally.max_abs_at, size, order),
        clusters=clusters,
        **{name: getattr(tally, name) for name in copied},
    )


def _locate(
    expected: torch.Tensor, actual: torch.Tensor, order: list[int], rule: _Rule, stream: int
) -> tuple[Extent, ...]:
    found = _Clusters()
    walk = make_walk(expected, actual, order, collapse=False)
    _native("locate", expected.device, stream, walk, rule, found)
    extents = {
        d: Extent(expected.size(d), found.first[place], found.last[place], tuple(found.bins[place]))
        for place, d in enumerate(order)
    }
    return tuple(extents[d] for d in range(expected.ndim))
