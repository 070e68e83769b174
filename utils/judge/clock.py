"""Where the seconds of a command go: its stages one after the other, and what was waited for inside them.

A CUDA device works on by itself: whoever waits for it is charged for what others queued there.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator


class Clock:
    """`laps`: seconds of each stage; they add up. `parts`: seconds inside the stages, by what was done.

    begun: when the first stage began, on the monotonic clock; now by default.
    """

    def __init__(self, begun: float | None = None) -> None:
        self.laps: dict[str, float] = {}
        self.parts: dict[str, float] = {}
        self._last = time.monotonic() if begun is None else begun

    def lap(self, name: str) -> None:
        """Ends a stage."""
        now = time.monotonic()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Charges what happens inside to `name`."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.charge(name, time.monotonic() - begun)

    def charge(self, name: str, seconds: float) -> None:
        self.parts[name] = self.parts.get(name, 0.0) + seconds


def process_begun() -> float:
    """When this process was started, on the monotonic clock, to a hundredth of a second."""
    with open("/proc/self/stat") as file:
        # The name, in brackets, may hold spaces; the start is the 22nd field, in ticks since the machine's start.
        ticks = int(file.read().rpartition(")")[2].split()[19])
    since = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - since
