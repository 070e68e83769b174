"""Where the time went: the GPU kernels of one call, by name, from torch's profiler (CUPTI), and whose each one is.

`record` runs in whichever process makes the call. What comes out of the solution's runner is the solution's word: it is
cleaned here (`table`), shown as reported by the runner, and decides no verdict by itself.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_MOST = 200
_FAMILIES = (
    ("torch", re.compile(r"\bat::|\bc10::|native::|vectorized_elementwise_kernel|cunn_|CatArrayBatched")),
    ("inductor or triton", re.compile(r"^triton_|^_?triton|triton_(poi|red|per|tem|mm|for)_")),
    ("cuDNN", re.compile(r"cudnn|convolve_|nchwToNhwc|nhwcToNchw|fprop|dgrad|wgrad|winograd|\bfft2d")),
    ("cuBLAS", re.compile(r"cublas|gemm|gemv|splitKreduce|nvjet|cutlass.*Kernel2|^(ampere|hopper|volta|sm\d+_xmma)_")),
    ("CUTLASS", re.compile(r"cutlass")),
    ("CUB or Thrust", re.compile(r"\bcub::|\bthrust::|DeviceReduce|DeviceScan|DeviceRadixSort")),
    ("NCCL", re.compile(r"^nccl")),
    ("copy", re.compile(r"^Memcpy|^memcpy")),
    ("fill", re.compile(r"^Memset|^memset")),
)  # fmt: skip
# Kernels a solution may use by the rules: its own, cuBLAS for GEMM, cuDNN for convolution, copies and fills.
_ALLOWED = {"own", "cuBLAS", "cuDNN", "copy", "fill"}


@dataclass(frozen=True)
class Kernel:
    """One row. ms: total device time in one call; share of all device time; occupancy: as CUPTI estimates it, 0..1.

    bytes_per_second: of a copy or fill, by the bytes it moved; of the only kernel of a call, by the call's necessary
    bytes (`attribute_bytes`). None where not known: the counters of --ncu know it for each kernel."""

    name: str
    family: str
    foreign: bool
    calls: int
    ms: float
    share: float
    registers: int | None
    shared_bytes: int | None
    occupancy: float | None
    bytes_per_second: float | None
    grid: str
    block: str


def record(call: Callable[[], Any], device: torch.device, warm: int = 1) -> list[dict[str, Any]]:
    """Raw kernel events of one `call`: name, microseconds, grid, block, registers, shared memory, occupancy.

    Raises RuntimeError, with what to do, where CUPTI records nothing. The chrome trace is read because the event
    objects leave out registers and occupancy. By the class below torch.profiler.profile, which loads the compiler, two
    or three seconds, to note its settings in the trace.
    """
    import torch
    from torch.autograd.profiler import profile

    if device.type != "cuda":
        raise RuntimeError("kernels can be recorded on a GPU only")
    for _ in range(warm):
        call()
    torch.cuda.synchronize(device)
    with profile(use_cpu=False, use_device="cuda", use_kineto=True) as session:
        call()
        torch.cuda.synchronize(device)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        session.export_chrome_trace(str(path))
        trace = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    events = from_trace(trace)
    if not events:
        raise RuntimeError(
            "no CUDA kernels were recorded: the call launched none, or CUPTI is not available (another profiler "
            "attached, or no permission for performance counters)"
        )
    return events


def from_trace(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The kernels, copies and fills of a chrome trace, one entry per name and launch shape with "calls" and total "us";
    synchronisation and host events are no kernels and left out."""
    groups: dict[tuple[str, str, str], dict[str, Any]] = {}
    for event in trace.get("traceEvents", []):
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        details = event.get("args", {})
        key = (str(event.get("name", "")), str(details.get("grid")), str(details.get("block")))
        found = groups.setdefault(
            key,
            {
                "name": key[0][:1000],
                "us": 0.0,
                "calls": 0,
                "grid": details.get("grid"),
                "block": details.get("block"),
                "registers": details.get("registers per thread"),
                "shared_bytes": details.get("shared memory"),
                "occupancy": details.get("est. achieved occupancy %"),
                "bytes": 0 if details.get("bytes") is not None else None,
            },
        )
        found["us"] += event.get("dur", 0)
        found["calls"] += 1
        if found["bytes"] is not None:
            found["bytes"] += details.get("bytes") or 0
    return sorted(groups.values(), key=lambda entry: -entry["us"])[:_MOST]


def table(events: Sequence[Any]) -> list[Kernel]:
    """Rows by name, the longest first, from events that may be anything at all: bad entries are dropped, text is
    bounded."""
    groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for event in list(events)[:100_000]:
        if not isinstance(event, Mapping):
            continue
        duration = _number(event.get("us"))
        if duration is None or duration < 0:
            continue
        key = (clean_name(str(event.get("name", ""))), _shape(event.get("grid")), _shape(event.get("block")))
        groups.setdefault(key, []).append(event)
    total = sum(_number(event["us"]) or 0.0 for group in groups.values() for event in group)
    rows = []
    for (name, grid, block), group in groups.items():
        spent = sum(_number(event["us"]) or 0.0 for event in group)
        occupancy = _number(group[0].get("occupancy"))
        kind = family(name)
        rows.append(
            Kernel(
                name=name,
                family=kind,
                foreign=kind not in _ALLOWED,
                calls=sum(_whole(event.get("calls")) or 1 for event in group),
                ms=spent / 1e3,
                share=spent / total if total else 0.0,
                registers=_whole(group[0].get("registers")),
                shared_bytes=_whole(group[0].get("shared_bytes")),
                occupancy=min(1.0, occupancy / 100) if occupancy is not None and occupancy >= 0 else None,
                bytes_per_second=_moved(kind, group, spent),
                grid=grid,
                block=block,
            )
        )
    return sorted(rows, key=lambda row: -row.ms)[:_MOST]


def attribute_bytes(rows: Sequence[Kernel], necessary: int) -> list[Kernel]:
    """`rows` with the call's necessary bytes credited to its kernel, where it launches exactly one."""
    kernels = [row for row in rows if row.family not in ("copy", "fill")]
    if len(kernels) != 1 or kernels[0].calls != 1 or kernels[0].ms <= 0:
        return list(rows)
    rate = necessary / (kernels[0].ms / 1e3)
    return [replace(row, bytes_per_second=rate) if row is kernels[0] else row for row in rows]


def family(name: str) -> str:
    """Whose kernel it is, by its name: "own" when it looks like no library's. A name is a hint, not proof."""
    for kind, pattern in _FAMILIES:
        if pattern.search(name):
            return kind
    return "own"


def clean_name(name: str) -> str:
    """A kernel's name for a table: printable, without `void` and the argument list, at most 160 characters."""
    name = "".join(c if c.isprintable() else "?" for c in name[:4000]).strip()
    name = name.removeprefix("void ")
    # The argument list is the last parenthesis at depth zero; template arguments may hold parentheses of their own.
    if name.endswith(")") and "(" in name:
        depth = 0
        for place in range(len(name) - 1, -1, -1):
            depth += (name[place] == ")") - (name[place] == "(")
            if depth == 0:
                # "Memcpy DtoD (Device -> Device)" is no argument list.
                name = name[:place] if place and name[place - 1] != " " else name
                break
    return name if len(name) <= 160 else name[:157] + "..."


def _shape(value: Any) -> str:
    if isinstance(value, (list, tuple)) and len(value) == 3 and all(isinstance(part, int) for part in value):
        return "x".join(str(part) for part in value)
    return ""


def _moved(kind: str, group: Sequence[Mapping[str, Any]], microseconds: float) -> float | None:
    """Bytes per second of copies (read and written) and fills (written)."""
    sizes = [_number(event.get("bytes")) for event in group]
    known = [size for size in sizes if size is not None and size > 0]
    if kind not in ("copy", "fill") or len(known) != len(sizes) or microseconds <= 0:
        return None
    return (2 if kind == "copy" else 1) * sum(known) / (microseconds / 1e6)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _whole(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 1 << 40 else None
