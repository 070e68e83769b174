"""What one tensor holds, found in one pass: its range, mean and rms, its NaNs and infinities."""

from __future__ import annotations

import ctypes
import math
from ctypes import c_double, c_int64
from dataclasses import dataclass

import torch

from utils.native import library
from utils.native.tensors import (
    device_number,
    make_walk,
    plain,
    require_aligned,
    require_strided,
    stream_handle,
    visiting_order,
)


class RawSummary(ctypes.Structure):
    """struct Summary of src/summary.h."""

    _fields_ = [
        ("finite", c_int64),
        ("nan", c_int64),
        ("inf", c_int64),
        ("least", c_double),
        ("greatest", c_double),
        ("total", c_double),
        ("squares", c_double),
    ]


@dataclass(frozen=True)
class Summary:
    """Of the finite elements, as doubles; of complex numbers the modulus. NaN where no element is finite."""

    count: int
    finite: int
    nan: int
    inf: int
    least: float
    greatest: float
    mean: float
    rms: float

    @property
    def deviation(self) -> float:
        """Standard deviation, from mean and rms: 0 for a constant, up to the rounding of their squares."""
        return math.sqrt(max(self.rms**2 - self.mean**2, 0.0)) if self.finite else math.nan


def summarise(tensor: torch.Tensor, stream: int | None = None) -> Summary:
    """Reads the tensor once, whatever its strides, and waits on `stream` (torch's current one by default). Raises
    CannotTell for layouts and dtypes that cannot be read."""
    require_strided(tensor, "tensor")
    tensor = plain(tensor)
    raw = RawSummary(least=math.inf, greatest=-math.inf)
    if tensor.numel():
        walk = make_walk(tensor, tensor, visiting_order(tensor, tensor), collapse=True)
        require_aligned(tensor, "tensor")
        if tensor.is_cuda:
            number, handle = device_number(tensor.device), stream_handle(tensor, stream)
            library.call("native_summary_cuda", number, handle, ctypes.byref(walk), ctypes.byref(raw))
        else:
            library.call("native_summary_cpu", ctypes.byref(walk), ctypes.byref(raw))
    some = raw.finite > 0
    return Summary(
        count=tensor.numel(),
        finite=raw.finite,
        nan=raw.nan,
        inf=raw.inf,
        least=raw.least if some else math.nan,
        greatest=raw.greatest if some else math.nan,
        mean=raw.total / raw.finite if some else math.nan,
        rms=math.sqrt(raw.squares / raw.finite) if some else math.nan,
    )
