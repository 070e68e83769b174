"""A profiling record as one HTML file: nothing is fetched, nothing is run, so it can be mailed, archived and printed.

python -m utils.profiling --html report.html
python -m utils.present.report record.json report.html      the same, later, from the JSON of --json
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.present import outcome
from utils.present.outcome import CannotTell
from utils.present.report_svg import Point, Series, distributions, roofline
from utils.timing import statistics
from utils.timing.units import rate_text, ratio_text, size_text, speed_text, time_text

_TEMPLATE = Path(__file__).with_name("report.html.j2")


def render(record: Mapping[str, Any]) -> str:
    """The page for an envelope of command "profiling". Raises CannotTell for a record of another kind or version."""
    import jinja2

    if record.get("schema") != "workbench/profiling/1":
        raise CannotTell(
            f"the record's schema is {record.get('schema')!r}; the report draws workbench/profiling/1, as --json of "
            "profiling writes it"
        )
    results = record["results"]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        time=time_text, speed=speed_text, ratio=ratio_text, percent=_percent, size=size_text, rate=rate_text
    )
    template = environment.from_string(_TEMPLATE.read_text(encoding="utf-8"))
    # An answer that ended early (not the same function, say) has a verdict and reasons, and nothing to draw.
    timed = results if results.get("solution") else None
    return template.render(
        record=record,
        timed=timed,
        distributions=_distributions(results) if timed else "",
        roofline=_roofline(results) if timed else "",
        tone={"FASTER": "good", "SLOWER": "bad", "FAIL": "bad"}.get(record["verdict"], "plain"),
        facts=_facts(record),
    )


def write(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Renders `record` into the file `path`. Raises CannotTell when the place cannot be written."""
    page = render(record)
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise CannotTell(f"cannot write the report to {path}: {error.strerror}; give --html a writable place") from None


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m utils.present.report", description="Draws a profiling record as one HTML file."
    )
    parser.add_argument("record", help="what python -m utils.profiling --json wrote")
    parser.add_argument("page", help="the HTML file to write")
    options = parser.parse_args(argv)
    try:
        record = json.loads(Path(options.record).read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotTell(f"cannot read {options.record}: {error.strerror}") from None
    except ValueError as error:
        raise CannotTell(f"{options.record} is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise CannotTell(f"{options.record} holds no record; give a file that --json of profiling wrote")
    write(options.page, record)
    return outcome.YES


def _distributions(results: Mapping[str, Any]) -> str:
    series = [_series("solution", "solution", results["solution"])]
    for row in results["baselines"]:
        series.append(_series(row["label"], "official" if row["official"] else "other", row))
    return distributions([item for item in series if item is not None])


def _series(label: str, kind: str, side: Mapping[str, Any]) -> Series | None:
    samples = [sample for turn in side["turns"] for sample in turn["samples"] if isinstance(sample, (int, float))]
    kept = statistics.clean(samples).kept
    return Series(label, kind, kept, side["summary"]["median"]) if side["summary"] and kept else None


def _roofline(results: Mapping[str, Any]) -> str:
    limit = results["limit"]
    work, rates = limit.get("work"), limit.get("rates")
    if not work or not rates or not work["bytes"]:
        return ""
    flop = work["matrix_flop"] + work["other_flop"]
    intensity = flop / work["bytes"]
    sides = [("solution", "solution", results["solution"]["summary"])]
    sides += [
        (row["label"], "official" if row["official"] else "other", row["summary"]) for row in results["baselines"]
    ]
    points = [
        Point(label, kind, intensity, flop / (summary["median"] / 1e3)) for label, kind, summary in sides if summary
    ]
    ceilings = [(name, rates["matrix"][name]) for name in ("fp32", "tf32", "bf16", "fp64") if name in rates["matrix"]]
    if limit.get("precision") == "fp16" and "fp16" in rates["matrix"]:
        ceilings = [(name, rate) for name, rate in ceilings if name != "bf16"] + [("fp16", rates["matrix"]["fp16"])]
    return roofline(rates["copy"], ceilings, points)


def _facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Environment and settings as rows; nested mappings are flattened with dots."""
    rows: list[tuple[str, str]] = []

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), item)
        elif isinstance(value, (list, tuple)):
            rows.append((prefix, ", ".join(str(item) for item in value) or "none"))
        elif value is not None:
            rows.append((prefix, str(value)))

    walk("", record.get("environment", {}))
    walk("gpu", record["results"].get("gpu", {}))
    walk("settings", record.get("settings", {}))
    return rows


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


if __name__ == "__main__":
    outcome.run(main)
