"""From samples to a verdict: pure functions, no clock, no GPU, no state.

The unit of evidence is a *round*: within it the solution and a baseline take turns, a few seconds apart at most, so
that whatever drifts slowly (clocks, temperature, a neighbour) is common to both and cancels in the round's ratio of
medians. Samples inside a turn are not independent of each other (they share cache, clock and power state), so they are
never pooled for an interval: rounds are resampled whole.

    ratio      exp of the mean over rounds of log(median(new) / median(base)), outer fifths trimmed; below 1 is faster
    interval   99 %: percentile bootstrap over rounds (Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13),
               widened for few rounds (Student's t against the normal), for autocorrelated rounds (effective sample
               size of a first-order process), and by what no number of rounds in one pair of processes can remove:
               the timer's quantum, the placement of two processes' memory, and what a launch takes in each of them
               (`FLOOR_*`)
    verdict    FASTER when the whole interval lies below 1 - RESOLUTION, SLOWER when above 1 + RESOLUTION, SAME when
               inside 1 ± RESOLUTION, else UNSURE
    target     "met" when the whole interval is at or below the target ratio, "missed" when above it, else "unsure"
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

FASTER, SAME, SLOWER, UNSURE = "FASTER", "SAME", "SLOWER", "UNSURE"
MET, MISSED, OPEN = "met", "missed", "unsure"

# A difference below one per cent is not claimed: rebuilding the same source, or a new process, moves a time by as much.
RESOLUTION = 0.01
CONFIDENCE = 0.99
# What stays between two processes that run the same code, however long one samples: DRAM channel and TLB placement
# (relative), and what a launch takes inside an event pair, which is a little different in every process and stays so
# (milliseconds for each kernel of a call, between any two processes). benchmarks/clock.py measures both.
FLOOR_RELATIVE = 0.002
FLOOR_MS = 0.0002

MIN_ROUNDS = 8
_FEWEST_ROUNDS = 4
GOAL_HALF_WIDTH = 0.003
_RESAMPLES = 2000
_TRIM = 0.2

# Student's t, two-sided 99 %, by degrees of freedom; beyond the table the normal value is within four per cent.
# fmt: off
_T99 = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
        2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750)
# fmt: on
_Z99 = 2.5758


@dataclass(frozen=True)
class Clean:
    """Samples fit for statistics, and how many were not."""

    kept: tuple[float, ...]
    dropped: int


@dataclass(frozen=True)
class Summary:
    """One variant's samples in milliseconds; `noise` is the robust relative spread inside a turn (1.4826 MAD /
    median)."""

    count: int
    median: float
    low: float  # 10th percentile
    high: float  # 90th percentile
    minimum: float
    noise: float
    dropped: int


@dataclass(frozen=True)
class Ratio:
    """time_new / time_base with its interval; `rounds` counts those in which both sides have samples."""

    value: float
    low: float
    high: float
    rounds: int
    # Half of the interval on the log scale before the floors are added: what more rounds can still narrow.
    half_width: float
    # What the floors added on either side.
    floor: float


def clean(samples: Sequence[float]) -> Clean:
    """Drops what cannot be a duration: zero, negative, NaN, infinite. The caller reports the count."""
    kept = tuple(sample for sample in samples if math.isfinite(sample) and sample > 0.0)
    return Clean(kept, len(samples) - len(kept))


def quantile(samples: Sequence[float], share: float) -> float:
    """Linear-interpolation quantile (Hyndman and Fan type 7). Raises ValueError without samples."""
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median(samples: Sequence[float]) -> float:
    """The middle of the samples. Raises ValueError without samples."""
    return quantile(samples, 0.5)


def noise(samples: Sequence[float]) -> float:
    """Robust relative standard deviation: 1.4826 * median absolute deviation / median."""
    middle = median(samples)
    return 1.4826 * median([abs(sample - middle) for sample in samples]) / middle if middle else math.inf


def quantum(samples: Sequence[float]) -> float:
    """The smallest step between distinct samples: an upper estimate of the timer's resolution, good once there are
    many.

    0 for fewer than 50 samples, where the smallest step says more of chance than of the timer.
    """
    distinct = sorted(set(samples))
    if len(samples) < 50:
        return 0.0
    # Sums of ticks in floating point differ in the last bits: steps below a picosecond are no steps.
    steps = [b - a for a, b in itertools.pairwise(distinct) if b - a > 1e-9]
    return min(steps, default=0.0)


def summary(turns: Sequence[Sequence[float]]) -> Summary | None:
    """All turns of one variant taken together; None when no sample is usable."""
    cleaned = [clean(turn) for turn in turns]
    pooled = [sample for part in cleaned for sample in part.kept]
    if not pooled:
        return None
    within = [noise(part.kept) for part in cleaned if len(part.kept) > 1]
    return Summary(
        count=len(pooled),
        median=median(pooled),
        low=quantile(pooled, 0.1),
        high=quantile(pooled, 0.9),
        minimum=min(pooled),
        noise=median(within) if within else 0.0,
        dropped=sum(part.dropped for part in cleaned),
    )


def ratio(
    new: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    *,
    seed: int = 0,
    launches: tuple[int, int] = (1, 1),
) -> Ratio | None:
    """The ratio of medians new / base; turn r of `new` and turn r of `base` were taken in the same round.

    launches: kernels in one call of each.
    Rounds in which either side has no usable sample are left out. None when no round is left. With fewer than two
    rounds the interval is unbounded, and the verdict therefore UNSURE.
    """
    logs, smallest = [], [math.inf, math.inf]
    ours_all: list[float] = []
    theirs_all: list[float] = []
    for new_turn, base_turn in zip(new, base, strict=False):
        ours, theirs = clean(new_turn).kept, clean(base_turn).kept
        if not ours or not theirs:
            continue
        medians = median(ours), median(theirs)
        logs.append(math.log(medians[0] / medians[1]))
        smallest = [min(pair) for pair in zip(smallest, medians, strict=True)]
        ours_all.extend(ours)
        theirs_all.extend(theirs)
    if not logs:
        return None
    floor = FLOOR_RELATIVE + max(quantum(ours_all), quantum(theirs_all)) / min(smallest)
    floor += sum(FLOOR_MS / 2 * max(1, count) / time for count, time in zip(launches, smallest, strict=True))
    centre = _trimmed_mean(logs)
    if len(logs) < 2:
        return Ratio(math.exp(centre), 0.0, math.inf, len(logs), math.inf, floor)
    below, above = _bootstrap(logs, centre, seed)
    return Ratio(
        value=math.exp(centre),
        low=math.exp(centre - below - floor),
        high=math.exp(centre + above + floor),
        rounds=len(logs),
        half_width=(below + above) / 2,
        floor=floor,
    )


def verdict(measured: Ratio | None, resolution: float = RESOLUTION) -> str:
    """FASTER, SAME, SLOWER or UNSURE, as defined at the top of this file."""
    if measured is None or measured.rounds < 2:
        return UNSURE
    if measured.high < 1 - resolution:
        return FASTER
    if measured.low > 1 + resolution:
        return SLOWER
    if measured.low >= 1 - resolution and measured.high <= 1 + resolution:
        return SAME
    return UNSURE


def target_state(measured: Ratio | None, target: float) -> str:
    """Whether time_new / time_base <= `target` is shown ("met"), refuted ("missed") or neither ("unsure")."""
    if measured is None or measured.rounds < 2:
        return OPEN
    if measured.high <= target:
        return MET
    if measured.low > target:
        return MISSED
    return OPEN


def enough(rounds: int, half_widths: Sequence[float], elapsed: float, budget: float) -> str | None:
    """Why sampling may stop ("precise" or "budget"), or None to go on.

    The floor of MIN_ROUNDS comes first, then precision, then the budget (seconds); the rule never looks at which way
    the ratio points, so that stopping early cannot favour a verdict. A budget that is spent twice over ends the
    sampling even under the floor, once there are enough rounds for an interval worth the name.
    """
    if elapsed >= 2 * budget and rounds >= _FEWEST_ROUNDS:
        return "budget"
    if rounds < MIN_ROUNDS:
        return None
    if half_widths and all(width <= GOAL_HALF_WIDTH for width in half_widths):
        return "precise"
    return "budget" if elapsed >= budget else None


def calls_per_turn(
    call_ms: float, overhead_ms: float, turn_ms: float = 60.0, floor: int = 5, ceiling: int = 200
) -> int:
    """How many timed calls make one turn of about `turn_ms`, given one call and what surrounds it (flush, protocol)."""
    each = max(call_ms, 0.0) + max(overhead_ms, 0.0)
    if not math.isfinite(each) or each <= 0.0:
        return ceiling
    return max(floor, min(ceiling, round(turn_ms / each)))


def _trimmed_mean(values: Sequence[float]) -> float:
    """Mean without the outer fifth on each side, once there are five values; the plain mean before that."""
    cut = int(len(values) * _TRIM) if len(values) >= 5 else 0
    kept = sorted(values)[cut : len(values) - cut]
    return math.fsum(kept) / len(kept)


def _bootstrap(values: Sequence[float], centre: float, seed: int) -> tuple[float, float]:
    """How far the interval reaches below and above `centre`, all corrections but the floors included."""
    draw = random.Random(seed)
    count = len(values)
    means = [_trimmed_mean(draw.choices(values, k=count)) for _ in range(_RESAMPLES)]
    tail = (1 - CONFIDENCE) / 2
    below, above = centre - quantile(means, tail), quantile(means, 1 - tail) - centre
    t = _T99[count - 2] if count - 2 < len(_T99) else _Z99
    # Few rounds: the bootstrap uses the population variance and the normal's tails.
    widen = math.sqrt(count / (count - 1)) * t / _Z99
    # Rounds that lean on each other carry less evidence than their number: n_eff = n (1 - r) / (1 + r).
    r = _autocorrelation(values)
    widen *= math.sqrt((1 + r) / (1 - r))
    return max(below, 0.0) * widen, max(above, 0.0) * widen


def _autocorrelation(values: Sequence[float]) -> float:
    """Lag-one autocorrelation, 0..0.8; negative values count as 0, and so do under MIN_ROUNDS values (no estimate)."""
    if len(values) < MIN_ROUNDS:
        return 0.0
    mean = math.fsum(values) / len(values)
    spread = math.fsum((value - mean) ** 2 for value in values)
    if spread <= 0.0:
        return 0.0
    lagged = math.fsum((a - mean) * (b - mean) for a, b in itertools.pairwise(values))
    return min(0.8, max(0.0, lagged / spread))
