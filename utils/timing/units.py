"""Figures as a person reads them: four significant digits, in the unit that suits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def time_text(ms: float | None) -> str:
    """Milliseconds as s, ms or µs; a dash for None."""
    if ms is None:
        return "–"
    if ms >= 1000:
        return f"{ms / 1000:.4g} s"
    return f"{ms:.4g} ms" if ms >= 1 else f"{ms * 1e3:.4g} µs"


def speed_text(ratio: float) -> str:
    """A time ratio new / base in words: 0.5 is "2.00x faster", 1.25 is "1.25x slower"."""
    if ratio <= 0:
        return "not measurable"
    return f"{1 / ratio:.2f}x faster" if ratio <= 1 else f"{ratio:.2f}x slower"


def ratio_text(ratio: Mapping[str, Any]) -> str:
    """A ratio of the record with its interval; an end that says nothing is not spelled out in digits."""
    high = ratio["high"]
    top = f"{high:.3f}" if isinstance(high, (int, float)) and high < 100 else "∞"
    return f"{ratio['value']:.3f} [{ratio['low']:.3f}, {top}]"


def rate_text(per_second: float, unit: str) -> str:
    """4.3e12, "B/s" is "4.3 TB/s"."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= factor:
            return f"{per_second / factor:.3g} {prefix}{unit}"
    return f"{per_second:.3g} {unit}"


def size_text(count: float, unit: str = "B") -> str:
    """A number of bytes or FLOP with a decimal prefix."""
    return rate_text(count, unit)
