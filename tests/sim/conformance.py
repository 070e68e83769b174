"""Runs the conformance suite (kernels/conformance.cu) on one library and compares with conformance_answers.py.

python conformance.py LIBRARY [NAME ...]      runs the checks on one library (the simulator's or nvcc's) and prints
                                              {name: what is wrong}, one JSON object a line
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator
from math import erf

import numpy as np
from conformance_answers import ANSWERS
from conformance_definitions import INPUTS, U32, Array, N


def disagreement(name: str, got: Array) -> str:
    """What is wrong with `got`, in words; "" when it is right."""
    want, tolerance = ANSWERS[name]
    if name == "erfinvf_":
        back = np.array([erf(v) for v in got.astype(np.float64)])
        wrong = np.abs(back - want) > 1e-6
    elif tolerance == -2:
        wrong = (got & U32(0xFFFFE000)) != want
    elif tolerance:
        with np.errstate(invalid="ignore"):
            wrong = np.abs(got.astype(np.float64) - want) > tolerance * np.maximum(
                np.abs(want.astype(np.float64)), 1e-3
            )
        wrong &= ~((got == want) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))))
    elif want.dtype.kind == "f":
        # NaNs have no defined payload.
        wrong = (got.view(f"u{got.itemsize}") != want.view(f"u{want.itemsize}")) & ~(np.isnan(got) & np.isnan(want))
    else:
        wrong = got != want
    if not wrong.any():
        return ""
    k = int(np.flatnonzero(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} wrong, first at {k}: got {got[k]!r}, want {want[k]!r}"


def run(library: ctypes.CDLL, names: list[str]) -> Iterator[tuple[str, str]]:
    """(name, "" or what is wrong) for each name in turn; ends after a CUDA error, which is there to stay."""
    arrays = [np.ascontiguousarray(INPUTS[k]) for k in "abcfghdeq"]
    pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    sizes = (ctypes.c_size_t * len(arrays))(*(x.nbytes for x in arrays))
    device = (ctypes.c_void_p * len(arrays))()
    error = library.conformance_setup(pointers, sizes, len(arrays), device)
    if error:
        raise SystemExit(f"CUDA error {error} in the set-up")
    for name in names:
        want, tolerance = ANSWERS[name]
        dtype = (
            np.dtype(np.float32)
            if tolerance and want.dtype == np.float64 and name not in ("fma_double", "dmul_ru", "log1p_")
            else want.dtype
        )
        got = np.zeros(N, dtype)
        function = ctypes.cast(getattr(library, f"{name}_run"), ctypes.c_void_p)
        error = library.conformance_call(
            function, device, got.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(got.nbytes)
        )
        yield name, f"CUDA error {error}" if error else disagreement(name, got)
        if error:
            return


if __name__ == "__main__":
    for name, wrong in run(ctypes.CDLL(sys.argv[1]), sys.argv[2:] or list(ANSWERS)):
        print(json.dumps({name: wrong}), flush=True)
