"""Sampling in rounds: every side takes one turn per round, one side at a time, until the evidence suffices.

A side is anything that can run a number of timed calls when told: the solution in its runner, or one baseline in the
baseline process. This module decides the order, the number of calls, what is retaken and when to stop; it knows
neither CUDA nor processes, and is tested with sides made of numbers.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from utils.timing import statistics

# After a switch of process the first calls meet cold instruction caches and TLBs. They are run, recorded, not counted.
# Calls of many milliseconds hardly notice, and cannot be repeated as often.
LEAD_IN = 3
_LONG_MS = 20.0
_WARM_SECONDS = 0.25
_RETAKES = 2
_COOL_SECONDS = 0.5
# Throttling that does not pass is a property of the machine: beyond this share of retaken turns nothing is retaken.
_HOPELESS = 0.5


@dataclass(frozen=True)
class Batch:
    """What one command of timed calls gave: milliseconds per call as reported, and the judge's wall clock in
    seconds."""

    samples: tuple[float, ...]
    wall: float


@dataclass(frozen=True)
class Turn:
    """One side's turn in one round. `start`, `end`: monotonic seconds. `throttled`: reasons, empty when usable."""

    round: int
    samples: tuple[float, ...]
    lead_in: tuple[float, ...]
    wall: float
    start: float
    end: float
    throttled: tuple[str, ...] = ()


class Side(Protocol):
    """One competitor. `run` performs exactly `calls` timed calls and raises SideFailed when it cannot."""

    @property
    def name(self) -> str: ...

    def run(self, calls: int) -> Batch: ...


class SideFailed(Exception):
    """A side could not run its calls; the message is one sentence. A baseline drops out, the solution's failure
    ends it."""


@dataclass
class Sampled:
    """All turns by side, and how the sampling went. `retaken` turns were discarded for throttling and are kept
    apart."""

    turns: dict[str, list[Turn]]
    calls: dict[str, int]
    lead_in: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    stopped: str = ""
    seconds: float = 0.0
    failed: dict[str, str] = field(default_factory=dict)
    retaken: list[tuple[str, Turn]] = field(default_factory=list)
    throttled_kept: int = 0
    # Of `seconds`, those before the first round.
    warm_up: float = 0.0

    def samples(self, name: str) -> list[tuple[float, ...]]:
        """Samples of `name` by round; an empty tuple for a round it missed, so that rounds of two sides pair up."""
        by_round = {turn.round: turn.samples for turn in self.turns.get(name, [])}
        return [by_round.get(number, ()) for number in range(self.rounds)]

    def batches(self, name: str) -> list[tuple[float, tuple[float, ...]]]:
        """(wall seconds, every reported time of the turn, lead-in included) for the witness."""
        return [(turn.wall, turn.lead_in + turn.samples) for turn in self.turns.get(name, [])]


def sample(
    candidate: Side,
    baselines: Sequence[Side],
    *,
    budget: float,
    seed: int,
    decisive: Sequence[str] = (),
    throttled: Callable[[float, float], Sequence[str]] = lambda start, end: (),
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[float], None] = time.sleep,
) -> Sampled:
    """Rounds of candidate and baselines until `statistics.enough` says so for the ratios to `decisive` baselines.

    budget: seconds for all sampling, warm-up included. A baseline that fails is dropped and named in `failed`;
    a failing candidate raises SideFailed. The order inside each round is drawn from `seed`.
    """
    began = clock()
    result = Sampled(turns={}, calls={})
    sides = _warm_up(candidate, baselines, result, budget, clock)
    result.warm_up = clock() - began
    order = random.Random(seed)
    while True:
        order.shuffle(sides)
        for side in list(sides):
            try:
                turn = _turn(side, result, throttled, clock, rest)
            except SideFailed as failure:
                if side is candidate:
                    raise
                result.failed[side.name] = str(failure)
                sides.remove(side)
                continue
            result.turns.setdefault(side.name, []).append(turn)
        result.rounds += 1
        elapsed = clock() - began
        widths = [] if result.rounds % 2 and elapsed < budget else _half_widths(candidate.name, decisive, result)
        reason = statistics.enough(result.rounds, widths, elapsed, budget)
        if reason:
            result.stopped, result.seconds = reason, elapsed
            return result


def _warm_up(
    candidate: Side, baselines: Sequence[Side], result: Sampled, budget: float, clock: Callable[[], float]
) -> list[Side]:
    """Runs every side until the clocks have risen, and settles how many calls make its turn."""
    sides = [candidate, *baselines]
    share = budget / 3 / len(sides)
    # A turn is short enough for the floor of rounds to fit into the budget, long enough to drown the switch of process.
    turn_ms = max(10.0, min(80.0, 1e3 * budget * 0.6 / (statistics.MIN_ROUNDS * len(sides))))
    goal = min(_WARM_SECONDS, share)
    for side in list(sides):
        calls, begun = 1, clock()
        try:
            while True:
                last = clock()
                batch = side.run(calls)
                now = clock()
                usable = statistics.clean(batch.samples).kept
                # The very first call says nothing: it may compile, allocate, or fill a table.
                if calls > 1 and (now - begun >= goal or calls >= 4096):
                    break
                # Twice as many, or as many as still fit, of which the turn's length is told as well.
                fitting = calls * (goal - (now - begun)) / max(now - last, 1e-6) if calls > 1 else math.inf
                calls = max(calls, min(2 * calls, math.ceil(fitting))) if calls > 1 else 2
        except SideFailed as failure:
            if side is candidate:
                raise
            result.failed[side.name] = str(failure)
            sides.remove(side)
            continue
        call_ms = statistics.median(usable) if usable else 0.0
        around = max(0.0, batch.wall * 1e3 / max(1, len(batch.samples)) - call_ms)
        floor = 5 if call_ms < _LONG_MS else 2
        result.calls[side.name] = statistics.calls_per_turn(call_ms, around, turn_ms, floor)
        result.lead_in[side.name] = LEAD_IN if call_ms < _LONG_MS else 1
    return sides


def _turn(
    side: Side,
    result: Sampled,
    throttled: Callable[[float, float], Sequence[str]],
    clock: Callable[[], float],
    rest: Callable[[float], None],
) -> Turn:
    """One turn, retaken while the GPU throttles, unless most of what was retaken so far throttled again."""
    for attempt in range(_RETAKES + 1):
        start, lead = clock(), result.lead_in[side.name]
        batch = side.run(result.calls[side.name] + lead)
        end = clock()
        reasons = tuple(throttled(start, end))
        turn = Turn(result.rounds, batch.samples[lead:], batch.samples[:lead], batch.wall, start, end, reasons)
        if not reasons:
            return turn
        taken = sum(len(turns) for turns in result.turns.values()) + 1
        if attempt == _RETAKES or len(result.retaken) > _HOPELESS * taken + _RETAKES:
            break
        result.retaken.append((side.name, turn))
        rest(_COOL_SECONDS)
    # Kept, for want of better, and said so: a GPU that always throttles must still give an answer.
    result.throttled_kept += 1
    return turn


def _half_widths(candidate: str, decisive: Sequence[str], result: Sampled) -> list[float]:
    widths = []
    for name in decisive:
        if name in result.failed:
            continue
        measured = statistics.ratio(result.samples(candidate), result.samples(name))
        widths.append(measured.half_width if measured else float("inf"))
    return widths
