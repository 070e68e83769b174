"""`python -m utils.history`: what was tried in a workspace, what was expected of it, what came of it, and the way down.

Each verification and profiling appends one line of JSON to `.history.jsonl` in its workspace (`append`):

    at, command, verdict, exit_code, reasons, note     when, what, and the sentence given with --note
    digests                                            of model.py, of the solution's sources, of the built module
    ms, ratio, official_ms, simulated                  profiling: medians in milliseconds, time ratio to torch.compile
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.present import console, outcome, record
from utils.present.outcome import CannotTell
from utils.problem.workspace import find_workspace
from utils.timing.units import time_text

FILE = ".history.jsonl"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR = 40


def append(folder: Path, written: Mapping[str, Any], note: str | None = None) -> str | None:
    """Adds the record `written` (an envelope of utils.present.record) to the history in `folder`.

    Returns a sentence when the place cannot be written: a verdict is never lost for want of a history.
    """
    results, environment = written.get("results", {}), written.get("environment", {})
    solution = (results.get("solution") or {}) if isinstance(results.get("solution"), Mapping) else {}
    official: Mapping[str, Any] = next((row for row in results.get("baselines", []) if row.get("official")), {})
    _, _, named = str(written.get("schema", "")).partition("/")
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": named.partition("/")[0],
        "verdict": written.get("verdict"),
        "exit_code": written.get("exit_code"),
        "reasons": list(written.get("reasons", []))[:3],
        "note": note,
        "digests": environment.get("digests", {}),
        "simulated": written.get("simulated", False),
    }
    # Times that were refused, or that no verdict rests on, are no step on the way down.
    counts = written.get("verdict") in ("FASTER", "SAME", "SLOWER", "UNSURE")
    figures = {
        "ms": (solution.get("summary") or {}).get("median"),
        "ratio": (official.get("ratio") or {}).get("value"),
        "official_ms": (official.get("summary") or {}).get("median"),
    }
    line |= figures if counts else dict.fromkeys(figures)
    text = json.dumps(record.plain(line), ensure_ascii=False) + "\n"
    try:
        # One write in append mode: two commands at once leave two whole lines.
        handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
    except OSError as error:
        return f"the history {folder / FILE} could not be written: {error.strerror}"
    return None


def read(folder: Path) -> tuple[list[dict[str, Any]], int]:
    """The entries, oldest first, and how many lines were not readable. Raises CannotTell where there is no history."""
    path = folder / FILE
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        raise CannotTell(
            f"there is no history in {folder} yet; python -m utils.verification or python -m utils.profiling writes "
            "the first entry"
        ) from None
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from None
    entries, bad = [], 0
    for line in lines:
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise ValueError
            entries.append(entry)
        except ValueError:
            bad += bool(line.strip())
    return entries, bad


def rows(entries: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """Table rows: number, time, command, verdict, solution's time, ratio, change against the best before,
    expectation."""
    best, shown = None, []
    for number, entry in enumerate(entries, 1):
        ms, ratio = _positive(entry.get("ms")), _positive(entry.get("ratio"))
        change: Any = ""
        if ms is not None:
            if best is not None:
                share = 100 * (ms / best - 1)
                change = (f"{share:+.1f} %", "pass" if share < -1 else "fail" if share > 1 else "note")
            best = ms if best is None else min(best, ms)
        good = entry.get("exit_code") == outcome.YES
        shown.append(
            [
                number,
                str(entry.get("at", ""))[:16].replace("T", " "),
                entry.get("command", ""),
                (
                    str(entry.get("verdict", "")),  # a simulated verdict says so itself
                    "pass" if good else "fail",
                ),
                "" if ms is None else time_text(ms),
                "" if ratio is None else f"{ratio:.3f}",
                change,
                entry.get("note") or "",
            ]
        )
    return shown


def plot(entries: Sequence[Mapping[str, Any]], width: int = _BAR) -> list[str]:
    """One bar per profiling on a logarithmic scale, the best so far marked; no lines for fewer than two profilings.

    The baseline of the newest profiling is drawn first, so that the way down has its starting point.
    """
    timed = [(number, _positive(entry.get("ms"))) for number, entry in enumerate(entries, 1)]
    points = [(number, ms) for number, ms in timed if ms is not None]
    if len(points) < 2:
        return []
    official = next(
        (_positive(e.get("official_ms")) for e in reversed(entries) if _positive(e.get("official_ms"))), None
    )
    values = [ms for _, ms in points] + ([official] if official else [])
    # The shortest bar keeps a visible length: the scale starts a little below the smallest value.
    low, high = math.log(min(values) * 0.9), math.log(max(values))
    span = high - low or 1.0

    def bar(ms: float) -> str:
        eighths = round(8 * width * (math.log(ms) - low) / span)
        return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")

    lines = []
    if official:
        lines.append(f"{'torch.compile':>14} {time_text(official):>10} {bar(official)}")
    best = math.inf
    for number, ms in points:
        mark = " best so far" if ms < best else ""
        best = min(best, ms)
        lines.append(f"{'#' + str(number):>14} {time_text(ms):>10} {bar(ms)}{mark}")
    return lines


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m utils.history", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--workspace", metavar="DIR", help="folder with model.py and model_new.py (default: the repository)"
    )
    parser.add_argument("--last", type=int, metavar="N", help="show the last N entries only")
    parser.add_argument("--json", metavar="FILE", help="write the entries as a record")
    options = parser.parse_args(argv)
    if options.last is not None and options.last < 1:
        raise CannotTell(f"--last needs a number of entries above zero, got {options.last}")
    workspace = find_workspace(options.workspace)
    entries, bad = read(workspace.root)
    drawn = rows(entries)[-options.last :] if options.last else rows(entries)
    columns = ("#", "when", "command", "verdict", "time", "ratio", "against best", "expected")
    console.table(f"history of {workspace.root.name}", columns, drawn, right=("#", "time", "ratio", "against best"))
    for line in plot(entries):
        console.say(line)
    if bad:
        console.say(f"{bad} line(s) of {FILE} were not readable and are left out", "warn")
    if options.json:
        record.write(
            options.json,
            record.envelope(
                "history",
                "SHOWN",
                outcome.YES,
                settings={"workspace": str(workspace.root), "last": options.last},
                results={"entries": entries, "unreadable_lines": bad},
            ),
        )
    return outcome.YES


def _positive(value: Any) -> float | None:
    """A finite number above zero, or None: the file may have been edited by hand."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


if __name__ == "__main__":
    outcome.run(main)
