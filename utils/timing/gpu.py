"""What the GPU says of itself through NVML while samples are taken: clocks, temperature, power, throttling, neighbours.

`Monitor` polls in a thread of the judge's process, so that every turn of samples can be looked up afterwards. Where
NVML is missing (no driver, a container without the library) everything here still works and says "not available".
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

# Reasons, by NVML's bit (nvml.h, nvmlClocksEventReason*). A hardware or thermal slow-down makes a sample unusable; a
# software power cap is the steady state of a heavy kernel at full load, and is only reported.
_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal slowdown (software)",
    0x40: "thermal slowdown (hardware)",
    0x80: "power brake",
}
_UNUSABLE = 0x08 | 0x20 | 0x40 | 0x80
_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Reading:
    """One look at the GPU. Units: seconds (monotonic), MHz, degrees Celsius, watts."""

    at: float
    sm_mhz: int | None
    memory_mhz: int | None
    celsius: int | None
    watts: float | None
    reasons: int


@dataclass(frozen=True)
class Card:
    """What does not change during a run."""

    name: str
    uuid: str
    driver: str
    max_sm_mhz: int | None
    power_limit_watts: float | None
    persistence: bool | None
    mig: bool | None
    compute_mode: str


def reason_names(reasons: int) -> list[str]:
    """Throttle reasons as words; idle and application-clock settings are not throttling and are left out."""
    return [name for bit, name in _REASONS.items() if reasons & bit]


class Monitor:
    """Polls one GPU from `start` to `stop`. All methods work, with empty answers, where NVML does not."""

    def __init__(self, uuid: str | None, own_pids: Iterable[int] = ()):
        self.readings: list[Reading] = []
        self.card: Card | None = None
        self.why_not: str | None = None
        self._own = {os.getpid(), *own_pids}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._nvml: Any = None
        self._handle: Any = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml = pynvml
            self._handle = _find(pynvml, uuid)
            self.card = _card(pynvml, self._handle)
        except ImportError:
            self.why_not = "the package nvidia-ml-py is not installed"
        except Exception as error:  # NVML raises one class per code; any of them means the same here
            self._nvml = None
            self.why_not = f"NVML is not available: {error}"

    def refuses_company(self) -> str | None:
        """A sentence where the GPU's compute mode does not let in the several processes of a profiling; else None."""
        if self.card is None or self.card.compute_mode in ("default", "unknown"):
            return None
        return (
            f"the GPU is in compute mode {self.card.compute_mode!r}, and a profiling needs several processes on it; "
            "set it back with: nvidia-smi -c DEFAULT"
        )

    def __enter__(self) -> Monitor:
        if self._nvml is not None:
            self._thread = threading.Thread(target=self._poll, name="nvml", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def read(self) -> Reading:
        """One reading now; a value the GPU does not give is None."""
        nvml, handle = self._nvml, self._handle
        return Reading(
            at=time.monotonic(),
            sm_mhz=_ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_mhz=_ask(nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM),
            celsius=_ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            watts=_thousandth(_ask(nvml.nvmlDeviceGetPowerUsage, handle)),
            reasons=_ask(_reasons_call(nvml), handle) or 0,
        )

    def between(self, start: float, end: float) -> list[Reading]:
        """Readings taken in [start, end] (monotonic seconds), with one neighbour before for short spans."""
        inside = [reading for reading in self.readings if start <= reading.at <= end]
        if inside:
            return inside
        before = [reading for reading in self.readings if reading.at < start]
        return before[-1:] if before and start - before[-1].at < 1.0 else []

    def throttled(self, start: float, end: float) -> list[str]:
        """Reasons that make samples taken in the span unusable; empty when there are none or NVML is silent."""
        seen = 0
        for reading in self.between(start, end):
            seen |= reading.reasons & _UNUSABLE
        return reason_names(seen)

    def neighbours(self, own: int = 0) -> list[dict[str, Any]]:
        """Compute processes of others on this GPU: [{"pid", "mib", "visible"}].

        In a container NVML lists pids of the host, which cannot be told from ours. Of the pids that do not exist here
        as many as `own` (our processes with a context) are taken to be ours.
        """
        if self._nvml is None:
            return []
        running = _ask(self._nvml.nvmlDeviceGetComputeRunningProcesses, self._handle) or []
        here: list[dict[str, Any]] = []
        elsewhere: list[dict[str, Any]] = []
        for process in running:
            if process.pid in self._own or _descends(process.pid, self._own):
                own -= 1
                continue
            mib = None if process.usedGpuMemory is None else process.usedGpuMemory >> 20
            visible = _exists(process.pid)
            (here if visible else elsewhere).append({"pid": process.pid, "mib": mib, "visible": visible})
        return here + elsewhere[max(0, own) :]

    def facts(self) -> dict[str, Any]:
        """The card and the span of every reading, for the record; {"available": false, "why": ...} without NVML."""
        if self.card is None:
            return {"available": False, "why": self.why_not}
        spans = {
            name: _span([getattr(reading, name) for reading in self.readings])
            for name in ("sm_mhz", "memory_mhz", "celsius", "watts")
        }
        seen = 0
        for reading in self.readings:
            seen |= reading.reasons
        return {
            "available": True,
            **asdict(self.card),
            **spans,
            "throttle_reasons": reason_names(seen),
            "readings": len(self.readings),
        }

    def _poll(self) -> None:
        while not self._stop.is_set():
            self.readings.append(self.read())
            self._stop.wait(_POLL_SECONDS)


def device_uuid(index: int) -> str | None:
    """The uuid ("GPU-...") of CUDA device `index` as torch numbers it; None where torch cannot say."""
    import torch

    try:
        uuid = str(torch.cuda.get_device_properties(index).uuid)
    except (AttributeError, RuntimeError, AssertionError):
        return None
    return uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"


def _find(nvml: Any, uuid: str | None) -> Any:
    if uuid is None:
        return nvml.nvmlDeviceGetHandleByIndex(0)
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except TypeError:  # older bindings want bytes
        return nvml.nvmlDeviceGetHandleByUUID(uuid.encode())


def _card(nvml: Any, handle: Any) -> Card:
    mig = _ask(nvml.nvmlDeviceGetMigMode, handle)
    persistence = _ask(nvml.nvmlDeviceGetPersistenceMode, handle)
    modes = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
    return Card(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        max_sm_mhz=_ask(nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        power_limit_watts=_thousandth(_ask(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
        persistence=None if persistence is None else bool(persistence),
        mig=None if mig is None else bool(mig[0]),
        compute_mode=modes.get(_ask(nvml.nvmlDeviceGetComputeMode, handle), "unknown"),
    )


def _reasons_call(nvml: Any) -> Any:
    """The call was renamed from "throttle" to "event" reasons; the bits are the same."""
    return (
        getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    )


def _ask(call: Any, *arguments: Any) -> Any:
    """The answer, or None where this GPU or driver does not support the question."""
    try:
        return call(*arguments)
    except Exception:  # one NVMLError subclass per code, "not supported" the usual one
        return None


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1000


def _span(values: list[Any]) -> Mapping[str, float] | None:
    known = sorted(value for value in values if value is not None)
    return {"min": known[0], "median": known[len(known) // 2], "max": known[-1]} if known else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _descends(pid: int, ancestors: set[int]) -> bool:
    """Whether `pid` is a child, at any depth, of one of `ancestors`."""
    for _ in range(64):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                # The command name may hold spaces and parentheses; the parent is the second field after the last ")".
                pid = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return False
        if pid in ancestors:
            return True
        if pid <= 1:
            return False
    return False
