"""The comparison as one would write it with torch, in fp64 and with temporaries: the native one is held against it."""

import math

import torch

INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
FLOATS = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e4m3fnuz,
    torch.float8_e5m2fnuz,
    torch.float8_e8m0fnu,
]
ALL = [*FLOATS, *COMPLEX, *INTEGERS, *UNSIGNED, torch.bool]


def wide(tensor):
    """The same numbers in complex128 or float64."""
    tensor = tensor.cpu()
    if tensor.dtype in COMPLEX:
        return tensor.to(torch.complex64).to(torch.complex128) if tensor.dtype != torch.complex128 else tensor
    return tensor.to(torch.float64)


def integers(tensor):
    """The elements as Python integers, row-major."""
    return [int(x) for x in tensor.cpu().flatten().tolist()]


def compare_exactly(expected, actual):
    """failing count and largest difference of two integer or bool tensors."""
    differences = [abs(e - a) for e, a in zip(integers(expected), integers(actual), strict=True)]
    return sum(d > 0 for d in differences), float(max(differences, default=0))


def compare_widely(expected, actual, atol, rtol):
    """A dict of what `compare` should find for float and complex tensors (all of it but indices and clusters)."""
    e, a = wide(expected), wide(actual)
    close = torch.isclose(a, e, rtol=rtol, atol=atol, equal_nan=True)
    finite = torch.isfinite(e) & torch.isfinite(a)
    agree = (e == a) | (torch.isnan(e) & torch.isnan(a))
    error = torch.where(finite, (e - a).abs(), 0.0)
    magnitude = torch.where(finite, e.abs(), 0.0)
    bound = atol + rtol * magnitude
    ratio = torch.where(error > 0, error if atol == rtol == 0 else error / bound, 0.0)
    ratio = torch.where(~finite & ~agree, math.inf, ratio)
    mismatched = bool((~finite & ~agree).any())
    needed_atol = (error - rtol * magnitude).clamp(min=0)
    needed_rtol = torch.where(error > atol, (error - atol) / magnitude, 0.0)
    e0, a0 = torch.where(finite, e, 0.0), torch.where(finite, a, 0.0)

    def largest(values):
        return float(values.max()) if values.numel() else 0.0

    return {
        "failing": int((~close).sum()),
        "finite": int(finite.sum()),
        "nan_expected": int(torch.isnan(e).sum()),
        "nan_actual": int(torch.isnan(a).sum()),
        "inf_expected": int((torch.isinf(e) & ~torch.isnan(e)).sum()),
        "inf_actual": int((torch.isinf(a) & ~torch.isnan(a)).sum()),
        "nonfinite_mismatch": int((~finite & ~agree).sum()),
        "max_abs": largest(error),
        "max_rel": largest(torch.where(error > 0, error / magnitude, 0.0)),
        "worst_ratio": largest(ratio),
        "atol_needed": math.inf if mismatched else largest(needed_atol),
        "rtol_needed": math.inf if mismatched else largest(needed_rtol),
        "peak": largest(magnitude),
        "sum_error2": float((error**2).sum()),
        "sum_expected2": float((e0.abs() ** 2).sum()),
        "sum_actual2": float((a0.abs() ** 2).sum()),
        "sum_product": float((e0.conj() * a0).sum().real),
        "ratio": ratio,
        "close": close,
    }
