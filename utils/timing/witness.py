"""The second clock: does the judge's wall clock leave room for more work than the runner's events report?

The events are read in the runner's process, which the solution shares; the wall clock is the judge's own. A batch of n
calls takes wall = n * (reported + surroundings) + hidden, where the surroundings (flush, poison, copies, protocol)
are what the trusted baseline process needs for the same command. Work hidden from the events (another stream, a
thread, a patched timer, a sleep) shows as `hidden`; a reported time longer than the wall clock shows as impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from utils.timing.statistics import median

# The surroundings of two processes doing the same work differ by this much per call (milliseconds) and in proportion.
SLACK_MS = 0.05
SLACK_RELATIVE = 0.25


@dataclass(frozen=True)
class Witness:
    """`hidden_ms` is wall-clock time per call that neither the reported time nor the surroundings explain."""

    agrees: bool
    reported_ms: float
    wall_ms: float
    surroundings_ms: float
    hidden_ms: float
    sentence: str


def surroundings(batches: Sequence[tuple[float, Sequence[float]]]) -> float:
    """Milliseconds per call around the timed region, from trusted batches of (wall seconds, reported ms per call)."""
    each = [(wall * 1e3 - sum(samples)) / len(samples) for wall, samples in batches if samples]
    return max(0.0, median(each)) if each else 0.0


def judge(batches: Sequence[tuple[float, Sequence[float]]], surroundings_ms: float) -> Witness:
    """Whether the reported times of `batches`, (wall seconds, reported ms per call), agree with the wall clock.

    Medians over batches are compared, so that one preempted batch accuses nobody. Refused: hidden time above
    SLACK_MS + SLACK_RELATIVE * (reported + surroundings), or a reported sum above the wall clock itself.
    """
    filled = [(wall * 1e3, samples) for wall, samples in batches if samples]
    if not filled:
        return Witness(
            False, 0.0, 0.0, surroundings_ms, 0.0, "no timed call came back, so the two clocks cannot be compared"
        )
    reported = median([sum(samples) / len(samples) for _, samples in filled])
    wall = median([wall / len(samples) for wall, samples in filled])
    hidden = wall - reported - surroundings_ms
    figures = (
        f"{reported:.4f} ms reported per call, {wall:.4f} ms by the judge's clock, "
        f"{surroundings_ms:.4f} ms of it around the call"
    )
    if reported > wall * 1.02 + 0.001:
        sentence = f"the reported times exceed the judge's wall clock by {reported - wall:.4f} ms per call ({figures})"
        return Witness(False, reported, wall, surroundings_ms, hidden, sentence)
    if hidden > SLACK_MS + SLACK_RELATIVE * (reported + surroundings_ms):
        sentence = (
            f"the judge's wall clock shows {hidden:.4f} ms per call that the reported times leave out ({figures}): "
            "work runs outside the timed region (another stream, a thread, a patched timer, or a sleep)"
        )
        return Witness(False, reported, wall, surroundings_ms, hidden, sentence)
    return Witness(True, reported, wall, surroundings_ms, hidden, f"both clocks agree: {figures}")
