"""The speed of light: how fast this device could do the work at best, and what stands in the way.

    t_memory  necessary bytes / measured copy bandwidth
    t_matrix  matrix FLOP / measured matrix rate at the precision
    t_other   estimated other operations / the fp32 rate
    limit     the largest of the three: each can at best overlap with the others

It is the roofline of Williams, Waterman and Patterson (CACM 52(4), 2009) with measured, not published, ceilings.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from utils.timing.work import Work

# Under this a call is launch and latency, and a percentage of the limit says nothing (milliseconds).
LATENCY_MS = 0.005
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp64")
_FORMAT = 1


@dataclass(frozen=True)
class Rates:
    """What this device was measured to do. copy: bytes per second, reads and writes together. matrix: FLOP/s."""

    copy: float
    matrix: Mapping[str, float]
    measured_at: str
    device: str


@dataclass(frozen=True)
class Limit:
    """The bound at one precision, in milliseconds. kind: "memory", "matrix", "other" or "latency"."""

    ms: float
    kind: str
    memory_ms: float
    matrix_ms: float
    other_ms: float
    precision: str
    intensity: float  # matrix and other FLOP per necessary byte
    caveats: tuple[str, ...]

    def reached(self, measured_ms: float) -> float:
        """Share of the limit a time reaches; above 1 means the work was not all necessary (see caveats)."""
        return self.ms / measured_ms


def limit(work: Work, rates: Rates, precision: str) -> Limit | str:
    """The bound of `work` at `precision` (a key of rates.matrix); a sentence where the rate is not known."""
    rate = rates.matrix.get(precision)
    if work.matrix_flop and not rate:
        return f"no matrix rate was measured for {precision} on this device"
    memory = 1e3 * work.bytes / rates.copy
    matrix = 1e3 * work.matrix_flop / rate if rate else 0.0
    # Without a measured fp32 rate (impossible in practice) the estimated part is left out rather than guessed twice.
    simt = rates.matrix.get("fp32")
    other = 1e3 * work.other_flop / simt if simt else 0.0
    longest = max(memory, matrix, other)
    kind = "latency" if longest < LATENCY_MS else {memory: "memory", matrix: "matrix", other: "other"}[longest]
    caveats = [
        *work.notes,
        "counted from the reference's own algorithm: a solution that finds a cheaper equivalent may pass 100 %",
        "inputs and weights smaller than the L2 may be met warm inside one call, never between calls",
    ]
    if kind == "other":
        caveats.append("the bound rests on the estimated part; take it as an order of magnitude")
    flop = work.matrix_flop + work.other_flop
    return Limit(
        longest, kind, memory, matrix, other, precision, flop / work.bytes if work.bytes else 0.0, tuple(caveats)
    )


def measure(device: Any, precisions: tuple[str, ...] = PRECISIONS) -> Rates:
    """Measures copy bandwidth (1 GiB, or an eighth of the free memory) and matrix rates (8192 cubed; 4096 for fp64).

    Runs about half a second on an H200, in a trusted process that has the GPU to itself. Data is random: constant data
    draws less power and runs up to 15 % faster. A precision the device lacks is left out.
    """
    import torch

    from utils.native.device import copy_bandwidth

    free, _ = torch.cuda.mem_get_info(device)
    copy = copy_bandwidth(torch.device(device).index or 0, min(1 << 30, free // 8) // 256 * 256)
    matrix = {}
    for precision in precisions:
        try:
            matrix[precision] = _matrix_rate(precision, device, free)
        except RuntimeError:
            continue
    torch.cuda.empty_cache()
    return Rates(copy, matrix, time.strftime("%Y-%m-%d"), torch.cuda.get_device_name(device))


def cached(key: Mapping[str, str], take: Callable[[], Rates], folder: Path | None = None) -> tuple[Rates, bool]:
    """The rates for the device and software in `key`, measured by `take` once; the flag says whether they were
    cached."""
    from utils.build.storage import cache_folder

    place = folder or cache_folder()
    if place is None:
        return take(), False
    name = "-".join("".join(c if c.isalnum() or c in "._" else "_" for c in key[part]) for part in sorted(key))
    path = place / f"rates-{name}.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["format"] == _FORMAT and stored["key"] == dict(key):
            rates = Rates(**stored["rates"])
            if rates.copy > 0 and all(rate > 0 for rate in rates.matrix.values()):
                return rates, True
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    rates = take()
    text = json.dumps({"format": _FORMAT, "key": dict(key), "rates": asdict(rates)}, indent=2)
    try:
        handle, temporary = tempfile.mkstemp(dir=place, prefix=".rates.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        pass  # measured again next time
    return rates, False


def _matrix_rate(precision: str, device: Any, free: int) -> float:
    """FLOP/s of a square matmul."""
    import torch

    kinds = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp64": torch.float64}
    dtype = kinds.get(precision, torch.float32)
    side = 4096 if precision == "fp64" or free < 8 << 30 else 8192
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        if precision == "tf32" and torch.cuda.get_device_capability(device) < (8, 0):
            raise RuntimeError("no TF32 before sm_80")
        a = torch.randn(side, side, device=device, dtype=dtype)
        b = torch.randn(side, side, device=device, dtype=dtype)
        out = torch.empty_like(a)
        return 2 * side**3 / (_best_ms(lambda: torch.mm(a, b, out=out), device) / 1e3)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed


def _best_ms(call: Callable[[], Any], device: Any, repeats: int = 8) -> float:
    """The shortest of a few event-timed calls: a ceiling is what the device can do, not what it usually does."""
    import torch

    with torch.cuda.device(device):
        for _ in range(2):
            call()
        times = []
        for _ in range(repeats):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            call()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
    return min(times)
