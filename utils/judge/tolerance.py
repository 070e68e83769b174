"""A tolerance, and what a comparison under it found, in one sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from utils.native.compare import Comparison

# Beyond this many times the given tolerance a miss is not close.
_NEAR = 20.0


@dataclass(frozen=True)
class Tolerance:
    """|expected - actual| <= atol + rtol * |expected|; `why` says where a tightened one comes from."""

    atol: float
    rtol: float
    why: str = ""


def tell(path: str, found: Comparison, tolerance: Tolerance) -> str:
    """A failed comparison in one sentence: how many, where, the worst element, and how close it was."""
    parts = [f"{path}: {found.failing:,} of {found.count:,} elements differ"]
    if found.unwritten:
        parts.append(
            f"{found.unwritten:,} of them were never written (they still hold the poison laid there before the call)"
        )
    if found.worst_index is not None:
        at = f"[{', '.join(map(str, found.worst_index))}]" if found.worst_index else "the only element"
        parts.append(f"worst at {at}: expected {_number(found.worst_expected)}, got {_number(found.worst_actual)}")
    if found.nonfinite_mismatch and not found.unwritten:
        parts.append(f"NaN or Inf on one side only in {found.nonfinite_mismatch:,}")
    where = found.where()
    if where and found.count > 1:
        parts.append(f"they lie in {where}")
    near = close_miss(found, tolerance)
    if near:
        parts.append(near)
    if tolerance.why:
        parts.append(f"judged at atol {tolerance.atol:.3g}, rtol {tolerance.rtol:.3g}: {tolerance.why}")
    return "; ".join(parts)


def close_miss(found: Comparison, tolerance: Tolerance) -> str:
    """The smallest tolerances that would have passed, each with the other as given; empty where none near would."""
    options = []
    if 0 < found.atol_needed <= _NEAR * max(tolerance.atol, 1e-6):
        options.append(f"atol {rounded_up(found.atol_needed)} (at rtol {tolerance.rtol:g})")
    if 0 < found.rtol_needed <= _NEAR * max(tolerance.rtol, 1e-6):
        options.append(f"rtol {rounded_up(found.rtol_needed)} (at atol {tolerance.atol:g})")
    return f"would pass with {' or '.join(options)}" if options else ""


def rounded_up(value: float) -> str:
    """Three significant digits that are not below `value`, so that using the printed tolerance really passes."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    scale = 10.0 ** (math.floor(math.log10(abs(value))) - 2)
    return f"{math.ceil(value / scale) * scale:.3g}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, complex)) else str(value)
