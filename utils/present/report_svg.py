"""The report's drawings as inline SVG, from numbers alone: distributions per variant, and a roofline.

Colours are CSS classes, so that the page's light, dark and printed styles apply. Text is escaped here; coordinates are
rounded to a tenth, which is all a screen shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from utils.timing.units import rate_text, time_text

_WIDTH = 720
_ROW = 64
_BINS = 60


@dataclass(frozen=True)
class Series:
    """One variant's samples in milliseconds; kind: "solution", "official" or "other"."""

    label: str
    kind: str
    samples: Sequence[float]
    median: float


@dataclass(frozen=True)
class Point:
    """A spot on the roofline: FLOP per byte and FLOP per second."""

    label: str
    kind: str
    intensity: float
    rate: float


def distributions(series: Sequence[Series]) -> str:
    """Per variant: the median as a bar from zero, and a histogram of its calls around that median, in per cent.

    The histograms share one axis, from the 1st to the 99th percentile of the widest variant; calls beyond are counted
    at its ends.
    """
    series = [item for item in series if item.samples]
    if not series:
        return ""
    split, longest = _WIDTH * 0.46, max(item.median for item in series)
    off = [[100 * (sample / item.median - 1) for sample in item.samples] for item in series]
    low = min(-0.5, *(_share(values, 0.01) for values in off))
    high = max(0.5, *(_share(values, 0.99) for values in off))
    axis = _Axis(low * 1.05, high * 1.05, split + 24, _WIDTH - 12, log=False)
    parts = []
    for number, (item, values) in enumerate(zip(series, off, strict=True)):
        top, base = number * _ROW, (number + 1) * _ROW - 6
        counts = [0] * _BINS
        for value in values:
            place = int(_BINS * (axis.at(value) - axis.start) / (axis.end - axis.start))
            counts[min(_BINS - 1, max(0, place))] += 1
        # The longest bar leaves room for its figure.
        bar = (split - 100) * item.median / longest
        tallest, step, room = max(counts), (axis.end - axis.start) / _BINS, _ROW - 16
        bars = "".join(
            _rect(axis.start + i * step, base - room * count / tallest, step * 0.9, room * count / tallest)
            for i, count in enumerate(counts)
            if count
        )
        parts.append(
            f'<text class="name" x="12" y="{top + 20}">{escape(item.label)}</text>'
            f'<rect class="{item.kind}" x="12" y="{top + 30}" width="{bar:.1f}" height="16" rx="2"/>'
            f'<text class="value" x="{18 + bar:.1f}" y="{top + 43}">{escape(time_text(item.median))}</text>'
            f'<g class="{item.kind}">{bars}</g>'
            f'<line class="rule" x1="12" x2="{_WIDTH - 12}" y1="{base}" y2="{base}"/>'
        )
    bottom = _ROW * len(series)
    for tick in axis.ticks(5):
        x = axis.at(tick)
        parts.append(
            _line("grid", x, 0, x, bottom - 6)
            + _text("tick", x, bottom + 12, f"{tick:+g} %" if tick else "0 %", "middle")
        )
    names = ", ".join(f"{item.label} {time_text(item.median)}" for item in series)
    return _svg(_WIDTH, bottom + 22, f"Times per call and their distributions: {names}", parts)


def roofline(copy: float, ceilings: Sequence[tuple[str, float]], points: Sequence[Point]) -> str:
    """Both axes logarithmic. copy: bytes per second; ceilings: (name, FLOP per second), all measured on this device."""
    points = [point for point in points if point.intensity > 0 and point.rate > 0]
    ceilings = [(name, rate) for name, rate in ceilings if rate > 0]
    if copy <= 0 or not ceilings or not points:
        return ""
    top = max(rate for _, rate in ceilings)
    ridge = top / copy
    low = min([point.intensity for point in points] + [ridge / 50]) / 3
    high = max([point.intensity for point in points] + [ridge]) * 6
    bottom = min([point.rate for point in points] + [copy * low * 2]) / 2
    height, left = 380, 74
    x = _Axis(low, high, left, _WIDTH - 14, log=True)
    y = _Axis(bottom, top * 2.2, height - 46, 14, log=True)
    parts = []
    for tick in x.ticks(7):
        parts.append(
            _line("grid", x.at(tick), 14, x.at(tick), height - 46)
            + _text("tick", x.at(tick), height - 30, f"{tick:g}", "middle")
        )
    for tick in y.ticks(6):
        parts.append(
            _line("grid", left, y.at(tick), _WIDTH - 14, y.at(tick))
            + _text("tick", left - 6, y.at(tick) + 4, rate_text(tick, ""), "end")
        )
    parts.append(_text("tick", (left + _WIDTH) / 2, height - 10, "FLOP per necessary byte", "middle"))
    parts.append(_text("tick", left + 6, 26, "FLOP/s"))
    # The memory roof, up to the highest ceiling.
    meets = min(high, ridge)
    start = max(low, bottom / copy)
    parts.append(_line("roof", x.at(start), y.at(copy * start), x.at(meets), y.at(copy * meets)))
    middle = math.sqrt(start * meets)
    label = f"{rate_text(copy, 'B/s')} copy"
    parts.append(_text("roofname", x.at(middle) - 8, y.at(copy * middle) - 8, label, "end"))
    for name, rate in ceilings:
        begin = max(low, rate / copy)
        if begin < high:
            parts.append(
                _line("roof", x.at(begin), y.at(rate), _WIDTH - 14, y.at(rate))
                + _text("roofname", _WIDTH - 18, y.at(rate) - 5, f"{name} {rate_text(rate, 'FLOP/s')}", "end")
            )
    taken: list[float] = []
    for point in sorted(points, key=lambda item: -item.rate):
        px, py = x.at(point.intensity), y.at(point.rate)
        # All variants do the same work, so they share a column: labels are pushed apart, by the height of a line on the
        # narrowest screen.
        line = py
        while any(abs(line - other) < 20 for other in taken):
            line += 3
        taken.append(line)
        right = px < _WIDTH * 0.6
        at, anchor = (px + 14, "start") if right else (px - 14, "end")
        radius = 7 if point.kind == "solution" else 5
        parts.append(
            f'<circle class="dot {point.kind}" cx="{px:.1f}" cy="{py:.1f}" r="{radius}"/>'
            f'<text class="dotname" x="{at:.1f}" y="{line + 4:.1f}" text-anchor="{anchor}">{escape(point.label)}</text>'
        )
    names = ", ".join(f"{point.label} {rate_text(point.rate, 'FLOP/s')}" for point in points)
    return _svg(_WIDTH, height, f"Roofline: {names}", parts)


@dataclass(frozen=True)
class _Axis:
    """Values low..high onto pixels start..end."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Round values inside the axis, at most about `most`."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            for steps in ((1, 2, 5), (1, 3), (1,)):
                found = [step * 10.0**power for power in range(first, last + 1) for step in steps]
                found = [value for value in found if self.low <= value <= self.high]
                if len(found) <= most:
                    return found
            return found[:: math.ceil(len(found) / most)]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
        return [index * step for index in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def _share(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[round(share * (len(ordered) - 1))]


def _rect(x: float, y: float, width: float, height: float) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(kind: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title, quote=True)}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )
