"""How a tensor is told to the native library: dtype codes, and two tensors as one walk over memory."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_int64, c_void_p

import torch

from utils.present.outcome import CannotTell

MAX_DIMS = 32

# The order of enum DType in src/elements.h.
DTYPES: tuple[torch.dtype | None, ...] = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    getattr(torch, "float8_e8m0fnu", None),  # torch >= 2.7
    torch.complex128,
    torch.complex64,
    torch.complex32,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
)
_CODES = {dtype: code for code, dtype in enumerate(DTYPES) if dtype is not None}


class Walk(ctypes.Structure):
    """struct Walk of src/compare.h."""

    _fields_ = [
        ("expected", c_void_p),
        ("actual", c_void_p),
        ("expected_dtype", c_int32),
        ("actual_dtype", c_int32),
        ("ndim", c_int32),
        ("reserved", c_int32),
        ("count", c_int64),
        ("size", c_int64 * MAX_DIMS),
        ("expected_stride", c_int64 * MAX_DIMS),
        ("actual_stride", c_int64 * MAX_DIMS),
    ]


def dtype_code(dtype: torch.dtype) -> int:
    """The library's code of `dtype`. Raises CannotTell for the kinds it cannot read (quantised, sub-byte)."""
    try:
        return _CODES[dtype]
    except KeyError:
        raise CannotTell(f"tensors of {dtype} cannot be compared; convert the output to a plain dtype first") from None


def is_exact(dtype: torch.dtype) -> bool:
    """Integers and bools, which are compared bit for bit."""
    return not (dtype.is_floating_point or dtype.is_complex)


def span_bytes(size: tuple[int, ...], stride: tuple[int, ...], itemsize: int) -> int:
    """Bytes from the first to the end of the last element of such a tensor; 0 when it has none."""
    if 0 in size:
        return 0
    return (sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1) * itemsize


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """`tensor` as its bytes say: without autograd, and with lazily conjugated or negated views made real."""
    return tensor.detach().resolve_conj().resolve_neg()


def require_aligned(tensor: torch.Tensor, what: str) -> None:
    """Raises CannotTell for an address that is no multiple of the element (of its part, for complex numbers)."""
    unit = tensor.itemsize // (2 if tensor.dtype.is_complex else 1)
    if tensor.data_ptr() % unit:
        raise CannotTell(f"the {what} begins at an address that is no multiple of {unit}, the size of {tensor.dtype}")


def require_strided(tensor: torch.Tensor, what: str) -> None:
    """Raises CannotTell for layouts without one address per element, and for devices other than the CPU and CUDA."""
    if tensor.layout is not torch.strided:
        raise CannotTell(f"the {what} has layout {tensor.layout}; only dense strided tensors can be compared")
    if tensor.device.type not in ("cpu", "cuda"):
        raise CannotTell(f"the {what} is on {tensor.device}; only CPU and CUDA tensors can be compared")


def visiting_order(expected: torch.Tensor, actual: torch.Tensor) -> list[int]:
    """The dimensions, the one with the largest step in memory first: transposed tensors are then read in order too."""

    def step(dimension: int) -> tuple[int, int]:
        return -(expected.stride(dimension) or actual.stride(dimension)), -actual.stride(dimension)

    return sorted(range(expected.ndim), key=step)


def make_walk(expected: torch.Tensor, actual: torch.Tensor, order: list[int], *, collapse: bool) -> Walk:
    """A walk over both (equal sizes, at least one element) in `order`, neighbouring dimensions merged where both allow
    it. Raises CannotTell for more than 32 dimensions that cannot be merged."""
    dims: list[tuple[int, int, int]] = []
    for d in order:
        size, e, a = expected.size(d), expected.stride(d), actual.stride(d)
        if collapse:
            if size == 1:
                continue
            if dims and dims[-1][1] == e * size and dims[-1][2] == a * size:
                dims[-1] = (dims[-1][0] * size, e, a)
                continue
        dims.append((size, e, a))
    dims = dims or [(1, 1, 1)]
    if len(dims) > MAX_DIMS:
        raise CannotTell(f"a tensor of {len(dims)} dimensions cannot be compared; at most {MAX_DIMS} are supported")
    walk = Walk(
        expected=expected.data_ptr(),
        actual=actual.data_ptr(),
        expected_dtype=dtype_code(expected.dtype),
        actual_dtype=dtype_code(actual.dtype),
        ndim=len(dims),
        count=expected.numel(),
    )
    for d, (size, e, a) in enumerate(dims):
        walk.size[d], walk.expected_stride[d], walk.actual_stride[d] = size, e, a
    return walk


def index_of(position: int, size: tuple[int, ...], order: list[int]) -> tuple[int, ...]:
    """The index in a tensor of `size` of the element that a walk in `order` meets at `position`."""
    index = [0] * len(size)
    for d in reversed(order):
        position, index[d] = divmod(position, size[d])
    return tuple(index)


def stream_handle(tensor: torch.Tensor, stream: int | None) -> int:
    """`stream`, or the handle of torch's current stream on the tensor's device."""
    return torch.cuda.current_stream(tensor.device).cuda_stream if stream is None else stream


def device_number(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index
