"""What a simulated module found: its reports, from the process that ran it.

A fault that ends a kernel (an illegal access, a barrier that is never complete, an assertion, something not simulated)
is raised at the launch, as RuntimeError with a message that starts with "[sim:<kind>]". Everything, faults included, is
kept by the module until asked for here.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

# Kinds, with what each means to a person.
KINDS = {
    "race": "two threads touch the same memory, one of them writing, with nothing that orders them",
    "out_of_bounds": "an access outside the array or tensor",
    "uninitialised_shared": "shared memory is read before the block wrote it",
    "misaligned": "a vector access at an address that is not a multiple of its size",
    "divergent_barrier": "not all threads of the block reach the same barrier",
    "exit_before_barrier": "threads ended before a barrier of their block",
    "missing_lanes": "a warp operation waits for lanes of its mask that never come",
    "incomplete_mbarrier": "threads wait for a phase of an mbarrier that never completes",
    "invalid_mbarrier": "an mbarrier that is not initialised, or that more arrive at than it was initialised for",
    "missing_proxy_fence": "a bulk copy reads shared memory that threads wrote, without a fence.proxy.async in between",
    "unfinished_copy": "a block ends while a bulk copy may still use its shared memory",
    "divergent_warp": "lanes of one mask meet in different warp operations",
    "inactive_lane": "a shuffle reads a lane that takes no part in it",
    "wrong_mask": "a lane calls a warp operation whose mask leaves it out",
    "launch_limit": "a launch beyond the device's limits",
    "illegal_access": "an address that is not mapped",
    "arithmetic": "an integer division by zero",
    "assert": "a failed assertion",
    "trap": "__trap() was reached",
    "livelock": "threads wait for what never happens",
    "grid_sync": "grid.sync() without a cooperative launch",
    "schedule": "the result depends on the order in which threads run",
    "unsupported": "something the simulator does not simulate: no verdict about it",
}
_MESSAGE = re.compile(r"\[sim:(\w+)\] ")


@dataclass(frozen=True)
class Finding:
    """One finding, of the simulator or of compute-sanitizer: the same form for both."""

    tool: str
    kind: str
    message: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    other_file: str = ""
    other_line: int = 0
    other_block: tuple[int, int, int] | None = None
    other_thread: tuple[int, int, int] | None = None
    count: int = 1
    fatal: bool = False

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else "unknown"


def fault_kind(error: BaseException | str) -> str | None:
    """The kind of a simulated fault that reached Python as an exception; None where it is something else."""
    match = _MESSAGE.search(str(error))
    return match[1] if match else None


def is_simulated(module: ModuleType) -> bool:
    """Whether a loaded `cuda_extension` is a simulated one."""
    return getattr(module, "__simulated__", False) is True


def _library(module: ModuleType | str | Path) -> ctypes.CDLL:
    path = module.__file__ if isinstance(module, ModuleType) else str(module)
    library = ctypes.CDLL(str(path))
    library.kernel_workbench_sim_reports.restype = ctypes.c_char_p
    library.kernel_workbench_sim_reports.argtypes = [ctypes.c_int]
    library.kernel_workbench_sim_schedule.argtypes = [ctypes.c_int, ctypes.c_ulonglong]
    return library


def fetch(module: ModuleType | str | Path, clear: bool = True) -> dict[str, Any]:
    """{"reports": [...], "launches": [kernel names]} of a module loaded in this process, as the runtime tells it."""
    return json.loads(_library(module).kernel_workbench_sim_reports(int(clear)).decode("utf-8", "replace"))


def set_schedule(module: ModuleType | str | Path, order: str, seed: int = 0) -> None:
    """The order in which blocks and threads run from now on: "default", "reverse" or "random" by `seed`."""
    _library(module).kernel_workbench_sim_schedule({"default": 0, "reverse": 1, "random": 2}[order], seed)


def findings(raw: Mapping[str, Any], mode: str) -> list[Finding]:
    """`fetch`'s reports as findings."""
    found = []
    for r in raw["reports"]:
        place, other = r["place"] or {}, r["other_place"] or {}
        found.append(
            Finding(
                tool=f"simulator/{mode}",
                kind=r["kind"],
                message=r["message"],
                kernel=r["kernel"],
                file=place.get("file", ""),
                line=place.get("line", 0),
                block=_triple(r["block"]),
                thread=_triple(r["thread"]),
                other_file=other.get("file", ""),
                other_line=other.get("line", 0),
                other_block=_triple(r["other_block"]),
                other_thread=_triple(r["other_thread"]),
                count=r["count"],
                fatal=r["fatal"],
            )
        )
    return found


def _triple(value: Any) -> tuple[int, int, int] | None:
    return (int(value[0]), int(value[1]), int(value[2])) if value else None
