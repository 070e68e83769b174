"""One row per workspace out of the records of its steps, and the means over all rows.

Ratios here are how many times faster: time of the baseline / time of the solution, above 1 is good. (Profiling's own
records hold the inverse.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from utils.gallery.steps import Done
from utils.present.outcome import YES
from utils.timing.units import time_text

COLUMNS = (
    "workspace", "verdict", "time", "torch.compile", "faster", "than the best at its precision", "of the limit",
    "precision", "worst error",
)  # fmt: skip
RIGHT = COLUMNS[2:7]


def row_of(name: str, steps: Sequence[Done]) -> dict[str, Any]:
    """What the gallery says of one workspace. Figures that were not measured are None.

    ms, compile_ms   median times of the solution and of torch.compile as it comes
    speedup          compile_ms / ms, from profiling's ratio over rounds
    equal_precision  likewise against the fastest baseline at the solution's precision
    limit            share of the speed of light that is reached, 1 is all
    """
    last = steps[-1]
    record = last.record or {}
    results = record.get("results") or {}
    verification = results.get("verification") or results
    precision = verification.get("precision") or {}
    solution = results.get("solution") or {}
    baselines = {row["key"]: row for row in results.get("baselines") or []}
    official = next((row for row in baselines.values() if row.get("official")), None)
    best = baselines.get(results.get("best_equal_precision") or "")
    bad = next((step for step in steps if step.exit_code != YES), None)
    return {
        "name": name,
        "verdict": record.get("verdict", "-") if bad in (None, last) else "NOT TRIED",
        "good": bad is None,
        "simulated": bool(record.get("simulated")),
        "why": bad.reason if bad else "",
        "ms": (solution.get("summary") or {}).get("median"),
        "compile_ms": ((official or {}).get("summary") or {}).get("median"),
        "speedup": _inverse(official),
        "equal_precision": _inverse(best),
        "limit": solution.get("limit_reached"),
        "precision": precision.get("class"),
        "worst_error": precision.get("max_abs_error"),
    }


def _inverse(baseline: Mapping[str, Any] | None) -> float | None:
    value = ((baseline or {}).get("ratio") or {}).get("value")
    return 1.0 / value if isinstance(value, (int, float)) and value > 0 else None


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """Of those that are there; None when none is."""
    present = [value for value in values if value is not None]
    return math.exp(sum(map(math.log, present)) / len(present)) if present else None


def cells(row: Mapping[str, Any]) -> list[Any]:
    """The row as text for COLUMNS; the verdict with its style."""

    def shown(value: float | None, form: str, unit: str = "") -> str:
        return "-" if value is None else format(value, form) + unit

    return [
        row["name"],
        (row["verdict"] + (" (simulated)" if row["simulated"] else ""), "yes" if row["good"] else "no"),
        "-" if row["ms"] is None else time_text(row["ms"]),
        "-" if row["compile_ms"] is None else time_text(row["compile_ms"]),
        shown(row["speedup"], ".2f", "x"),
        shown(row["equal_precision"], ".2f", "x"),
        shown(None if row["limit"] is None else 100 * row["limit"], ".0f", " %"),
        row["precision"] or "-",
        shown(row["worst_error"], ".1e"),
    ]


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table for a README."""
    plain = [[cell[0] if isinstance(cell, tuple) else cell for cell in cells(row)] for row in rows]
    lines = [COLUMNS, ["---:" if column in RIGHT else "---" for column in COLUMNS], *plain]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def closing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sentences under the table: how many are good, the means, and why the others are not."""
    good = sum(row["good"] for row in rows)
    sentences = [f"{good} of {len(rows)} verified within the rules" + (", simulated" if any_simulated(rows) else "")]
    if not any_simulated(rows):
        sentences[0] += " and at the target against torch.compile"
    for key, words in (
        ("speedup", "torch.compile as it comes"),
        ("equal_precision", "the best baseline at equal precision"),
    ):
        mean = geometric_mean(row[key] for row in rows)
        count = sum(row[key] is not None for row in rows)
        if mean is not None:
            sentences.append(f"geometric mean over {count}: {mean:.2f} times as fast as {words}")
    return sentences + [f"{row['name']}: {row['why']}" for row in rows if row["why"]]


def any_simulated(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(row["simulated"] for row in rows)
