"""Poison: memory filled so that what was never written can be told from any result.

Each 8-byte word is drawn from the seed and its place. Read as a float of any width or as a complex number it is NaN
with a payload no arithmetic produces; read as an integer of 16 bits or more it is improbable; int8 and uint8 get any
byte, bool any byte but 0 and 1 (src/poison_pattern.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_uint64, c_void_p
from dataclasses import dataclass

import torch

from utils.native import library
from utils.native.tensors import device_number, dtype_code, make_walk, plain, require_strided, span_bytes, stream_handle

# enum PoisonKind of src/poison_pattern.h.
NONE, WIDE, BYTES, BOOL, F8, FNUZ, E8M0 = range(-1, 6)
_KINDS = {
    torch.float8_e4m3fn: F8,
    torch.float8_e5m2: F8,
    torch.float8_e4m3fnuz: FNUZ,
    torch.float8_e5m2fnuz: FNUZ,
    torch.int8: BYTES,
    torch.uint8: BYTES,
    torch.bool: BOOL,
}
if hasattr(torch, "float8_e8m0fnu"):
    _KINDS[torch.float8_e8m0fnu] = E8M0


class Span(ctypes.Structure):
    """struct Span of src/poison.h."""

    _fields_ = [("data", c_void_p), ("nbytes", c_int64), ("seed", c_uint64), ("kind", c_int32), ("reserved", c_int32)]


class RawDamage(ctypes.Structure):
    """struct Damage of src/poison.h."""

    _fields_ = [("bytes", c_int64), ("first", c_int64), ("last", c_int64)]


@dataclass(frozen=True)
class Damage:
    """Bytes of a poisoned span that changed: how many, and the offsets of the first and the last."""

    bytes: int
    first: int
    last: int


def kind_of(dtype: torch.dtype) -> int:
    """The pattern a tensor of `dtype` is poisoned with. Raises CannotTell for dtypes the library cannot read."""
    dtype_code(dtype)
    return _KINDS.get(dtype, WIDE)


def mixed_seed(seed: int) -> int:
    """`seed` as the library wants it: 64 well-mixed bits, so that neighbouring seeds give unrelated patterns.

    The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
    """
    x = (seed + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def _bytes(tensor: torch.Tensor) -> int:
    require_strided(tensor, "tensor to poison")
    return span_bytes(tuple(tensor.shape), tensor.stride(), tensor.itemsize)


def poison(tensor: torch.Tensor, seed: int, stream: int | None = None) -> None:
    """Fills the memory from the tensor's first to its last element, the gaps of its strides included, on `stream` (a
    handle; torch's current one by default)."""
    nbytes = _bytes(tensor)
    if nbytes == 0:
        return
    kind = kind_of(tensor.dtype)
    if tensor.is_cuda:
        number = device_number(tensor.device)
        library.call(
            "native_poison_cuda",
            number,
            stream_handle(tensor, stream),
            tensor.data_ptr(),
            nbytes,
            kind,
            mixed_seed(seed),
        )
    else:
        library.call("native_poison_cpu", tensor.data_ptr(), nbytes, kind, mixed_seed(seed))


def count_poison(tensor: torch.Tensor, seed: int, stream: int | None = None) -> int:
    """How many elements still hold the poison of `seed` exactly. A tensor of one-byte elements has some by chance: one
    in 256 for int8 and uint8; of one-byte floats only every NaN that was computed."""
    tensor = plain(tensor)
    if _bytes(tensor) == 0:
        return 0
    walk = make_walk(tensor, tensor, list(range(tensor.ndim)), collapse=True)
    count = c_int64()
    if tensor.is_cuda:
        library.call(
            "native_count_poison_cuda",
            device_number(tensor.device),
            stream_handle(tensor, stream),
            ctypes.byref(walk),
            kind_of(tensor.dtype),
            mixed_seed(seed),
            ctypes.byref(count),
        )
    else:
        library.call(
            "native_count_poison_cpu", ctypes.byref(walk), kind_of(tensor.dtype), mixed_seed(seed), ctypes.byref(count)
        )
    return count.value


def damage(tensors: Sequence[torch.Tensor], seeds: Sequence[int], stream: int | None = None) -> list[Damage | None]:
    """For each contiguous tensor, poisoned with its seed before: what changed in it since, None where nothing did.

    One native call and one wait for all of them; they must be on one device.
    """
    if not tensors:
        return []
    spans = (Span * len(tensors))()
    for span, tensor, seed in zip(spans, tensors, seeds, strict=True):
        span.data, span.nbytes, span.kind, span.seed = (
            tensor.data_ptr(),
            _bytes(tensor),
            kind_of(tensor.dtype),
            mixed_seed(seed),
        )
    found = (RawDamage * len(tensors))()
    if tensors[0].is_cuda:
        number = device_number(tensors[0].device)
        handle = stream_handle(tensors[0], stream)
        library.call("native_damage_cuda", number, handle, ctypes.byref(spans), len(tensors), ctypes.byref(found))
    else:
        library.call("native_damage_cpu", ctypes.byref(spans), len(tensors), ctypes.byref(found))
    return [Damage(d.bytes, d.first, d.last) if d.bytes else None for d in found]
