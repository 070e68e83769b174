"""The record of a profiling, put together from what was sampled. Pure: everything here can be rebuilt from the
samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from utils.timing import limits, statistics
from utils.timing.baselines import Built
from utils.timing.kernels import Kernel
from utils.timing.rounds import Sampled, Turn
from utils.timing.statistics import Ratio, Summary
from utils.timing.units import ratio_text, speed_text, time_text
from utils.timing.variants import OFFICIAL, Variant
from utils.timing.witness import Witness
from utils.timing.work import Work

SOLUTION = "solution"
# Up to this device time (milliseconds) launch overhead matters, and the end-to-end figures are part of the story.
SMALL_MS = 0.2


@dataclass
class Extra:
    """Figures beside the device time, in milliseconds per call; None where not taken, with the reason in `why`."""

    end_to_end: float | None = None
    graph: float | None = None
    why: dict[str, str] = field(default_factory=dict)


@dataclass
class Evidence:
    """Everything measured, by side name ("solution" or a variant's key)."""

    sampled: Sampled
    variants: list[Variant]
    built: Mapping[str, Built]  # by variant key
    precision: str
    precision_class: str | None
    target: float
    extras: Mapping[str, Extra] = field(default_factory=dict)
    witness: Witness | None = None
    checked: int = 0
    work: Work | str | None = None
    rates: limits.Rates | None = None
    fp64: bool = False
    kernels: Sequence[Kernel] | str = ()
    ncu: Any = None
    gpu: Mapping[str, Any] = field(default_factory=dict)
    neighbours: Sequence[Mapping[str, Any]] = ()
    # Of the parts of the profiling, by name.
    seconds: Mapping[str, float] = field(default_factory=dict)
    # By side: kernels of one call, as its process tells; none where that is not known.
    launches: Mapping[str, int] = field(default_factory=dict)
    # By process of the baselines: seconds from the start of all until it was ready, had the trial, had built.
    processes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The verdict against the official baseline, whether the target is met, sentences, and the `results` of the
    record."""

    verdict: str
    target: str
    headline: list[str]
    warnings: list[str]
    results: dict[str, Any]

    @property
    def met(self) -> bool:
        return self.target == statistics.MET


def build(evidence: Evidence) -> Result:
    """Statistics, bounds and sentences from the evidence."""
    sampled = evidence.sampled
    ours = statistics.summary(sampled.samples(SOLUTION))
    bound = _limit(evidence)
    rows = [_baseline(evidence, variant, bound) for variant in evidence.variants]
    official = next((row for row in rows if row["official"] and row["ratio"]), None)
    verdict = official["verdict"] if official else statistics.UNSURE
    target = official["target"] if official else statistics.OPEN
    best = best_equal(rows)
    headline = _headline(ours, official, best, bound, evidence)
    results = {
        "target": {"ratio": evidence.target, "state": target},
        "headline": headline,
        "solution": {
            "summary": _plain(ours),
            "precision_class": evidence.precision_class,
            "extra": _plain(evidence.extras.get(SOLUTION)),
            "limit_reached": bound.reached(ours.median) if isinstance(bound, limits.Limit) and ours else None,
            "turns": _turns(sampled.turns.get(SOLUTION, [])),
        },
        "baselines": rows,
        "best_equal_precision": best["key"] if best else None,
        "limit": _limit_record(evidence, bound),
        "kernels": [asdict(row) for row in evidence.kernels] if not isinstance(evidence.kernels, str) else [],
        "kernels_why": evidence.kernels if isinstance(evidence.kernels, str) else None,
        "ncu": evidence.ncu,
        "witness": _plain(evidence.witness),
        "checked_calls": evidence.checked,
        "sampling": {
            "rounds": sampled.rounds,
            "stopped": sampled.stopped,
            "seconds": sampled.seconds,
            "warm_up_seconds": sampled.warm_up,
            "calls_per_turn": sampled.calls,
            "throttled_kept": sampled.throttled_kept,
            "retaken": [{"side": name, **asdict(turn)} for name, turn in sampled.retaken],
        },
        "gpu": dict(evidence.gpu),
        "neighbours": [dict(neighbour) for neighbour in evidence.neighbours],
        "launches": dict(evidence.launches),
        "seconds": dict(evidence.seconds),
        "processes": {name: dict(marks) for name, marks in evidence.processes.items()},
    }
    warnings = _warnings(evidence, ours, rows)
    results["warnings"] = warnings
    return Result(verdict, target, headline, warnings, results)


def best_equal(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The fastest baseline at the solution's precision that could be timed."""
    timed = [row for row in rows if row["equal_precision"] and row["ratio"]]
    return min(timed, key=lambda row: row["summary"]["median"], default=None)


def _baseline(evidence: Evidence, variant: Variant, bound: limits.Limit | str | None) -> dict[str, Any]:
    sampled = evidence.sampled
    summary = statistics.summary(sampled.samples(variant.key)) if variant.key in sampled.turns else None
    launches = evidence.launches.get(SOLUTION, 1), evidence.launches.get(variant.key, 1)
    measured = (
        statistics.ratio(sampled.samples(SOLUTION), sampled.samples(variant.key), launches=launches)
        if summary
        else None
    )
    built = evidence.built.get(variant.key)
    error = sampled.failed.get(variant.key) or (built.error if built else "not run")
    return {
        "key": variant.key,
        "label": variant.label,
        "mode": variant.mode,
        "precision": variant.precision,
        "official": variant == Variant(OFFICIAL),
        "equal_precision": variant.precision == evidence.precision,
        "error": error,
        "summary": _plain(summary),
        "ratio": _plain(measured),
        "verdict": statistics.verdict(measured) if measured else None,
        "target": statistics.target_state(measured, evidence.target) if measured else None,
        "extra": _plain(evidence.extras.get(variant.key)),
        "limit_reached": bound.reached(summary.median) if isinstance(bound, limits.Limit) and summary else None,
        "build": {
            "seconds": built.seconds,
            "waited": built.waited,
            "measured": built.measured,
            "missed": built.missed,
            "graphs": built.graphs,
            "graph_breaks": built.graph_breaks,
            "recompiled": built.recompiled,
            "difference_from_eager": built.difference,
        }
        if built
        else None,
        "turns": _turns(sampled.turns.get(variant.key, [])),
    }


def _limit(evidence: Evidence) -> limits.Limit | str | None:
    if evidence.work is None or isinstance(evidence.work, str):
        return evidence.work
    if evidence.rates is None:
        return "the device's own rates were not measured"
    precision = "fp64" if evidence.fp64 else "fp32" if evidence.precision == "default" else evidence.precision
    return limits.limit(evidence.work, evidence.rates, precision)


def _limit_record(evidence: Evidence, bound: limits.Limit | str | None) -> dict[str, Any]:
    record: dict[str, Any] = {"why": bound if isinstance(bound, str) else None}
    if isinstance(bound, limits.Limit):
        record |= asdict(bound)
    if isinstance(evidence.work, Work):
        record["work"] = {**asdict(evidence.work), "bytes": evidence.work.bytes}
    if evidence.rates is not None:
        record["rates"] = asdict(evidence.rates)
    return record


def _headline(
    ours: Summary | None,
    official: Mapping[str, Any] | None,
    best: Mapping[str, Any] | None,
    bound: limits.Limit | str | None,
    evidence: Evidence,
) -> list[str]:
    lines = []
    if official:
        states = {
            statistics.MET: "met",
            statistics.MISSED: "not met",
            statistics.OPEN: "not shown: the interval straddles it",
        }
        lines.append(f"{_against(official)}; target {evidence.target:g} {states[official['target']]}")
    else:
        reason = (
            evidence.sampled.failed.get(OFFICIAL) or getattr(evidence.built.get(OFFICIAL), "error", None) or "not run"
        )
        lines.append(f"UNSURE: the official baseline, torch.compile, could not be timed: {reason}")
    if best and not (official and best["key"] == official["key"]):
        lines.append(_against(best, ", the best baseline at equal precision"))
    elif best:
        lines.append("at equal precision torch.compile as it comes is the best baseline timed, so the same ratio holds")
    else:
        lines.append("no baseline at equal precision could be timed")
    if isinstance(bound, limits.Limit) and ours:
        words = {
            "memory": "memory traffic",
            "matrix": f"{bound.precision} matrix arithmetic",
            "other": "other arithmetic (estimated)",
            "latency": "launch latency",
        }
        share = "" if bound.kind == "latency" else f"{100 * bound.reached(ours.median):.0f} % of the "
        lines.append(f"{share}speed of light: {time_text(bound.ms)} at {bound.precision}, set by {words[bound.kind]}")
    return lines


def _against(row: Mapping[str, Any], role: str = "") -> str:
    """The verdict against one baseline as the start of a sentence; `role` says which baseline it is."""
    ratio, verdict, label = row["ratio"], row["verdict"], row["label"] + role
    words = {
        statistics.SAME: f"to one per cent as fast as {label}",
        statistics.UNSURE: f"not told apart from {label} in the time given",
    }
    said = words.get(verdict) or f"{speed_text(ratio['value'])} than {label}"
    return f"{verdict}: {said} (time ratio {ratio_text(ratio)})"


def _warnings(evidence: Evidence, ours: Summary | None, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    sampled = evidence.sampled
    found = []
    if evidence.neighbours:
        shown = ", ".join(f"pid {n['pid']}" for n in list(evidence.neighbours)[:4])
        found.append(
            f"{len(evidence.neighbours)} other process(es) had a context on this GPU ({shown}); times may be disturbed"
        )
    if sampled.throttled_kept:
        found.append(f"the GPU throttled without pause: {sampled.throttled_kept} throttled turns had to be kept")
    elif sampled.retaken:
        found.append(f"{len(sampled.retaken)} turns were taken again because the GPU throttled")
    if "power cap" in evidence.gpu.get("throttle_reasons", []):
        found.append(
            "the power cap held the clocks down at times; it acts on both sides, ratios stay valid, times are longer"
        )
    dropped = (ours.dropped if ours else 0) + sum(row["summary"]["dropped"] for row in rows if row["summary"])
    if dropped:
        found.append(f"{dropped} samples were zero, negative or not finite, and were dropped")
    for row in rows:
        build = row["build"]
        if build and build["graph_breaks"]:
            found.append(
                f"{row['label']} breaks the graph {build['graph_breaks']} time(s): a weaker baseline than it could be"
            )
        if build and build["missed"]:
            found.append(
                f"{row['label']} chose among its candidates while the GPU was in use ({build['missed']} timings): it "
                "may be weaker than it could be; --build-alone gives it the GPU"
            )
        if build and build["recompiled"]:
            found.append(f"{row['label']} recompiled {build['recompiled']} time(s) while it was timed")
        if build and build["difference_from_eager"] is not None and build["difference_from_eager"] > 0.05:
            found.append(
                f"{row['label']} differs from eager by {100 * build['difference_from_eager']:.1f} % (rms): not a "
                "sound baseline here"
            )
    fastest = min((row["ratio"]["value"] for row in rows if row["ratio"]), default=None)
    if fastest is not None and fastest < 0.1:
        found.append(
            "a speed-up above ten is rare: the problem may collapse algebraically, or the baseline is poor; read the "
            "kernel table"
        )
    found.extend(_kernel_warnings(evidence.kernels))
    found.extend(_launch_warnings(evidence.launches, rows))
    reached = None
    bound = _limit(evidence)
    if isinstance(bound, limits.Limit) and ours and bound.kind != "latency":
        reached = bound.reached(ours.median)
    if reached is not None and reached > 1.05:
        found.append(
            f"the solution runs at {100 * reached:.0f} % of the speed of light counted from the reference: "
            "it found a cheaper way (algebra, sparsity), its precision is lower than judged, or its data stays in "
            "the L2 within a call"
        )
    return found


def _kernel_warnings(rows: Sequence[Kernel] | str) -> list[str]:
    """What the kernel table suggests about whose work it is; a hint, since names are only names."""
    if isinstance(rows, str) or not rows:
        return []
    found = []
    foreign = [row for row in rows if row.foreign]
    if foreign:
        share = 100 * sum(row.share for row in foreign)
        names = ", ".join(dict.fromkeys(row.family for row in foreign))
        found.append(f"{share:.0f} % of the device time is in kernels that are not the solution's own ({names})")
    if not any(row.family == "own" for row in rows):
        found.append("no kernel of the solution's own was seen: by their names, all come from libraries")
    return found


def _launch_warnings(launches: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where launches, not their number of samples, set what can be told from the official baseline."""
    for row in rows:
        count = max(launches.get(SOLUTION, 1), launches.get(row["key"], 1))
        if row["official"] and row["ratio"] and count > 1 and row["ratio"]["floor"] > 2 * statistics.RESOLUTION:
            return [
                f"with {count} kernels in a call this short, what a launch takes in one process or another leaves "
                f"{100 * row['ratio']['floor']:.0f} % in doubt"
            ]
    return []


def _turns(turns: Sequence[Turn]) -> list[dict[str, Any]]:
    return [asdict(turn) for turn in turns]


def _plain(value: Summary | Ratio | Extra | Witness | None) -> dict[str, Any] | None:
    return asdict(value) if value is not None else None
