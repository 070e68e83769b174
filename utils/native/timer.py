"""Times single calls, cold: caches flushed before, CUDA events of our own around, nothing of torch in between.

    timer = DeviceTimer(torch.device("cuda:0"))
    for _ in range(n):
        timer.flush_l2()
        result, milliseconds = timer.time(lambda: model(x))

or, to queue many calls and read the times later, `start()` and `stop(mark)` around each and `elapsed_ms(mark)` at the
end. On the CPU the same interface runs on the monotonic clock.

A process that runs a solution's code cannot vouch for its own clock: whoever judges keeps a second one outside.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from ctypes import c_double, c_int32, c_void_p
from typing import TypeVar

import torch

from utils.native import device as devices
from utils.native import library
from utils.native.tensors import device_number

Result = TypeVar("Result")

_BATCH = 64


class DeviceTimer:
    """A clock on one device. `stream` is the handle of the CUDA stream everything is recorded on: a number, or None
    for torch's current stream at the time of each call."""

    def __init__(self, device: torch.device, stream: int | None = None) -> None:
        self.device = device
        self._stream = stream
        self._cuda = device.type == "cuda"
        self._number = device_number(device) if self._cuda else -1
        self._free: list[tuple[int, int]] = []
        self._begun: dict[int, tuple[int, int]] = {}
        self._made: list[int] = []
        self._next = 0

    def flush_l2(self) -> None:
        """Waits for the stream, then empties the device's L2 of everything earlier calls left there, lines they marked
        as persisting or evict-last included; on the CPU sweeps a buffer of twice the last cache."""
        if self._cuda:
            library.call("native_flush_l2", self._number, self._handle())
        else:
            library.call("native_flush_cpu")

    def delay_us(self, microseconds: float) -> None:
        """Keeps the stream busy for so long (at most a second), so that what is queued meanwhile starts without a gap;
        on the CPU, waits."""
        if self._cuda:
            library.call("native_delay", self._number, self._handle(), microseconds)
        else:
            end = time.monotonic_ns() + round(min(microseconds, 1e6) * 1000)
            while time.monotonic_ns() < end:
                pass

    def start(self) -> int:
        """Marks the begin of a timed call; returns the mark to give to stop and elapsed_ms."""
        mark = self._next
        self._next += 1
        if self._cuda:
            pair = self._pair()
            self._begun[mark] = pair
            self._record(pair[0])
        else:
            self._begun[mark] = (time.monotonic_ns(), 0)
        return mark

    def stop(self, mark: int) -> None:
        """Marks the end of the call that `start` returned `mark` for."""
        if self._cuda:
            self._record(self._begun[mark][1])
        else:
            end = time.monotonic_ns()
            self._begun[mark] = (self._begun[mark][0], end)

    def elapsed_ms(self, mark: int) -> float:
        """Milliseconds between start and stop of `mark`, which is then forgotten; waits until the device is there.
        Raises NativeError with CUDA's words when the call between them failed."""
        first, last = self._begun.pop(mark)
        if not self._cuda:
            return (last - first) / 1e6
        milliseconds = c_double()
        library.call("native_event_elapsed", self._number, first, last, ctypes.byref(milliseconds))
        self._free.append((first, last))
        return milliseconds.value

    def time(self, function: Callable[[], Result]) -> tuple[Result, float]:
        """Calls `function` between two marks: (what it returned, milliseconds). Does not flush."""
        mark = self.start()
        result = function()
        self.stop(mark)
        return result, self.elapsed_ms(mark)

    def stream_is_idle(self) -> bool:
        """Whether all work queued on the stream has ended. Raises NativeError when it ended in an error."""
        if not self._cuda:
            return True
        idle = c_int32()
        library.call("native_stream_idle", self._number, self._handle(), ctypes.byref(idle))
        return bool(idle.value)

    def synchronize_stream(self) -> None:
        """Waits for the stream alone: what a caller who reads the result on it waits for."""
        if self._cuda:
            library.call("native_synchronize_stream", self._number, self._handle())

    def settle_ms(self) -> float:
        """Waits for the stream, then for the whole device: how much longer the device was busy than the stream, in
        milliseconds of the host's clock. More than some hundredths means work on other streams."""
        if not self._cuda:
            return 0.0
        self.synchronize_stream()
        begin = time.monotonic_ns()
        library.call("native_synchronize_device", self._number)
        return (time.monotonic_ns() - begin) / 1e6

    def device_synchronize_error(self) -> str | None:
        """Waits for the device; the error that ended its work in words, or None."""
        return devices.synchronize_error(self._number) if self._cuda else None

    def pending_errors(self) -> list[str]:
        """Errors that a call left unread in torch's CUDA runtime, such as a launch that was refused."""
        return devices.pending_errors() if self._cuda else []

    def close(self) -> None:
        """Gives the events back. May be called again; the timer then makes new ones when used."""
        if self._made:
            events = (c_void_p * len(self._made))(*self._made)
            self._made, self._free, self._begun = [], [], {}
            library.call("native_events_destroy", self._number, len(events), ctypes.byref(events))

    def __enter__(self) -> DeviceTimer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _handle(self) -> int:
        return torch.cuda.current_stream(self.device).cuda_stream if self._stream is None else self._stream

    def _record(self, event: int) -> None:
        library.call("native_event_record", self._number, event, self._handle())

    def _pair(self) -> tuple[int, int]:
        if not self._free:
            events = (c_void_p * _BATCH)()
            library.call("native_events_create", self._number, _BATCH, ctypes.byref(events))
            made = [int(event or 0) for event in events]
            self._made += made
            self._free = list(zip(made[::2], made[1::2], strict=True))
        return self._free.pop()
