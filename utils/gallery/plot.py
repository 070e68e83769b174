"""The gallery's rows as one chart: how many times as fast as torch.compile, on a logarithmic scale. Plain SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from utils.timing.statistics import FASTER

_LABELS = 190  # width of the names
_CHART = 520
_RIGHT = 70
_LINE = 30
_TOP = 64
_BOTTOM = 40
_TICKS = (0.5, 1, 2, 3, 5, 10, 20, 30, 50, 100)
_BAR = "#2f6db3"
_MARK = "#d9822b"
_TEXT = 'font-family="system-ui, sans-serif" font-size="13" fill="#222"'


def draw(rows: Sequence[Mapping[str, Any]], device: str) -> str:
    """The SVG text: a bar per workspace with a speed-up, longest first, and a mark for equal precision.

    Rows without a speed-up are left out; with none at all the chart says so. A bar whose verdict is not FASTER is pale
    and says which it is.
    """
    measured = sorted((row for row in rows if row["speedup"]), key=lambda row: -row["speedup"])
    height = _TOP + _LINE * max(len(measured), 1) + _BOTTOM
    width = _LABELS + _CHART + _RIGHT
    highest = max([2.0, *(row["speedup"] for row in measured)]) * 1.1
    lowest = min([0.9, *(min(row["speedup"], row["equal_precision"] or 1.0) * 0.9 for row in measured)])
    span = math.log(highest / lowest)

    def x(value: float) -> float:
        return _LABELS + _CHART * math.log(value / lowest) / span

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" {_TEXT} font-weight="600">How many times as fast, on {escape(device)}</text>',
        f'<rect x="12" y="34" width="14" height="10" fill="{_BAR}"/>',
        f'<text x="32" y="44" {_TEXT}>torch.compile as it comes</text>',
        f'<circle cx="219" cy="39" r="5" fill="{_MARK}"/>',
        f'<text x="232" y="44" {_TEXT}>the best baseline at the same precision</text>',
    ]
    bottom = height - _BOTTOM
    for tick in _TICKS:
        if lowest <= tick <= highest:
            stroke = "#888" if tick == 1 else "#ddd"
            parts.append(
                f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP - 6}" y2="{bottom}" stroke="{stroke}"/>'
            )
            parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 18}" {_TEXT} text-anchor="middle">{tick:g}x</text>')
    if not measured:
        parts.append(f'<text x="{_LABELS}" y="{_TOP + 16}" {_TEXT}>nothing measured</text>')
    for index, row in enumerate(measured):
        middle = _TOP + _LINE * index + _LINE / 2
        left, right = sorted((x(1), x(row["speedup"])))
        sure = row["verdict"] == FASTER
        said = f"{row['speedup']:.2f}" + ("" if sure else f"  {row['verdict']}")
        parts.append(
            f'<text x="{_LABELS - 10}" y="{middle + 4:.1f}" {_TEXT} text-anchor="end">{escape(row["name"])}</text>'
        )
        parts.append(
            f'<rect x="{left:.1f}" y="{middle - 9:.1f}" width="{right - left:.1f}" height="18" '
            f'fill="{_BAR}" fill-opacity="{1 if sure else 0.35}"/>'
        )
        parts.append(f'<text x="{right + 8:.1f}" y="{middle + 4:.1f}" {_TEXT}>{escape(said)}</text>')
        if row["equal_precision"]:
            parts.append(
                f'<circle cx="{x(row["equal_precision"]):.1f}" cy="{middle:.1f}" r="5" fill="{_MARK}" stroke="white"/>'
            )
    parts.append("</svg>")
    return "\n".join(parts) + "\n"
