"""Nsight Compute on the solution's kernels: a few metrics, each with a sentence on what it means here.

ncu starts the runner inside its sandbox, so the profiled code is as confined as ever; clocks are left as they are
(`--clock-control none`) and caches are flushed before each pass, as in the timed calls. Reading hardware counters may
be reserved for administrators by the driver; then the sandbox's user cannot, and the answer says what to do.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.judge.failure import RunnerFailed
from utils.timing.kernels import clean_name
from utils.timing.sessions import TimedSession
from utils.timing.units import rate_text

if TYPE_CHECKING:
    from utils.timing.run import Options
    from utils.timing.sides import Trial

TIME = "gpu__time_duration.sum"
_DRAM = "dram__bytes.sum.per_second"
_DRAM_SHARE = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
_SM_SHARE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_ACTIVE = "sm__warps_active.avg.pct_of_peak_sustained_active"
_THEORY = "sm__maximum_warps_per_active_cycle_pct"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
_LOADS = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"
_STORES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"
_REGISTERS = "launch__registers_per_thread"
_LIMITS = {
    "registers": "launch__occupancy_limit_registers",
    "shared memory": "launch__occupancy_limit_shared_mem",
    "the block size": "launch__occupancy_limit_warps",
    "the number of blocks": "launch__occupancy_limit_blocks",
}
METRICS = (
    TIME, _DRAM, _DRAM_SHARE, _SM_SHARE, _ACTIVE, _THEORY, _CONFLICTS, _WAVEFRONTS, _LOADS, _STORES,
    _REGISTERS, *_LIMITS.values(),
)  # fmt: skip
_MOST_KERNELS = 20
_TIMEOUT = 240.0


def find() -> Path | None:
    """Where ncu is: on PATH, in CUDA_HOME, or in the usual prefixes."""
    places = [
        os.environ.get("CUDA_HOME", ""),
        "/usr/local/cuda",
        *map(str, sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)),
    ]
    found = shutil.which("ncu")
    candidates = [found] if found else []
    candidates += [str(Path(place) / part) for place in places if place for part in ("bin/ncu", "ncu")]
    return next(
        (Path(path).resolve() for path in candidates if Path(path).is_file() and os.access(path, os.X_OK)), None
    )


def collect(options: Options, trial: Trial) -> dict[str, Any]:
    """{"kernels": [{"name", "ms", "metrics", "sentences"}], "why": None or why there are none}. Never raises for
    ncu's sake."""
    from utils.timing.sides import Stand

    tool = find()
    if tool is None:
        return _none(
            "Nsight Compute (ncu) is not installed; it comes with the CUDA toolkit, or as the package nsight-compute"
        )
    session = NcuSession(tool, options)
    try:
        session.ready()
        stand = Stand(session, trial, options.seed)
        session.profiled(stand.inputs)
        session.close_politely()
        text = session.report()
    except RunnerFailed as failed:
        return _none(_reason(failed.output or failed.sentence))
    finally:
        session.close()
    rows = sorted(parse(text.splitlines()), key=lambda launch: -(launch["ms"] or 0.0))
    if not rows:
        return _none(_reason(text))
    return {"kernels": [{**row, "sentences": sentences(row["metrics"])} for row in rows[:_MOST_KERNELS]], "why": None}


def parse(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Kernels with their metrics from `ncu --csv` in order of launch: a line per metric, base units; other lines
    are skipped."""
    kept = [line for line in lines if line.startswith('"')]
    launches: dict[str, dict[str, Any]] = {}
    for row in csv.DictReader(kept):
        number, name, metric, text = (row.get(key) for key in ("ID", "Kernel Name", "Metric Name", "Metric Value"))
        if not number or not name or not metric:
            continue
        launch = launches.setdefault(number, {"name": clean_name(name), "ms": None, "metrics": {}})
        with suppress(ValueError, TypeError):
            value = float(str(text).replace(",", ""))
            if math.isfinite(value):
                launch["metrics"][metric] = value
    for launch in launches.values():
        nanoseconds = launch["metrics"].get(TIME)
        launch["ms"] = None if nanoseconds is None else nanoseconds / 1e6
    return list(launches.values())


def sentences(metrics: Mapping[str, float]) -> list[str]:
    """What the metrics of one kernel say, the bound first; a metric that is missing is passed over."""
    found = []
    memory, compute = metrics.get(_DRAM_SHARE), metrics.get(_SM_SHARE)
    if memory is not None and compute is not None:
        moved = f" ({rate_text(metrics[_DRAM], 'B/s')})" if metrics.get(_DRAM) else ""
        figures = f"DRAM at {memory:.0f} % of its peak{moved}, SMs at {compute:.0f} %"
        if max(memory, compute) < 40:
            found.append(
                f"bound by latency: {figures}; neither is busy, so more work in flight or a larger grid is what helps"
            )
        elif memory >= compute:
            near = (
                "close to the limit, only fewer bytes help"
                if memory > 85
                else "wider loads or more of them in flight can raise it"
            )
            found.append(f"bound by memory: {figures}; {near}")
        else:
            found.append(
                f"bound by computation: {figures}; fewer or cheaper instructions, or tensor cores, are what helps"
            )
    active, theory = metrics.get(_ACTIVE), metrics.get(_THEORY)
    if active is not None:
        limits = {word: metrics[name] for word, name in _LIMITS.items() if name in metrics}
        limiter = (
            f", limited by {min(limits, key=lambda word: limits[word])}"
            if limits and (theory is None or theory < 99)
            else ""
        )
        possible = f" of {theory:.0f} % possible" if theory is not None else ""
        registers = f", {metrics[_REGISTERS]:.0f} registers per thread" if _REGISTERS in metrics else ""
        found.append(f"occupancy {active:.0f} %{possible}{limiter}{registers}")
    conflicts, wavefronts = metrics.get(_CONFLICTS), metrics.get(_WAVEFRONTS)
    if conflicts and wavefronts:
        share = 100 * conflicts / wavefronts
        if share >= 5:
            found.append(f"bank conflicts cost {share:.0f} % of shared-memory wavefronts; pad or swizzle the layout")
    for name, word in ((_LOADS, "loads"), (_STORES, "stores")):
        used = metrics.get(name)
        if used is not None and 0 < used < 75:
            found.append(
                f"global {word} use {used:.0f} % of each 32-byte sector; neighbouring threads should touch "
                "neighbouring addresses"
            )
    return found


class NcuSession(TimedSession):
    """A session whose runner is started by ncu, inside the sandbox."""

    def __init__(self, tool: Path, options: Options, metrics: Sequence[str] = METRICS) -> None:
        self._tool, self._metrics = tool, metrics
        super().__init__(
            options.solution, options.device, module=options.module, policy=options.policy, timeout=_TIMEOUT
        )

    @property
    def _log(self) -> Path:
        return self.stage.root / "tmp" / "ncu.csv"

    def _entry(self) -> list[str]:
        flags = [
            "--csv",
            "--print-units",
            "base",
            "--log-file",
            str(self._log),
            "--clock-control",
            "none",
            "--cache-control",
            "all",
        ]
        flags += ["--profile-from-start", "off", "--target-processes", "all", "--metrics", ",".join(self._metrics)]
        mine = super()._entry()
        code = (
            "import os, sys; os.execv({0!r}, [{0!r}, *{1!r}, sys.executable, '-I', '-S', '-B', *{2!r}, sys.argv[-1]])"
        )
        return ["-c", code.format(str(self._tool), flags, mine)]

    def profiled(self, inputs: Any) -> None:
        """One call of forward under ncu's eyes; every kernel is replayed a few times."""
        self._ask("profiled", self.delivered(inputs), timeout=_TIMEOUT)

    def close_politely(self) -> None:
        """Lets the runner end by itself, so that ncu writes its report."""
        self._ask("bye", {}, timeout=10.0)
        self.process.exit_status(30.0)

    def report(self) -> str:
        """What ncu wrote: text from the sandbox, to be read as data."""
        with suppress(OSError):
            return self._log.read_bytes()[: 16 << 20].decode(errors="replace")
        return self.process.output.tail(4000)


def _none(why: str) -> dict[str, Any]:
    return {"kernels": [], "why": why}


def _reason(text: str) -> str:
    """Why ncu gave nothing, from its own words."""
    if "ERR_NVGPUCTRPERM" in text:
        return (
            "the driver reserves hardware counters for administrators, and the sandbox's user is none: run with "
            "--no-sandbox as "
            "root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"
        )
    said = [line.strip() for line in text.splitlines() if "==ERROR==" in line or "==WARNING==" in line]
    return f"ncu reported no kernels{': ' + said[0][:300] if said else ''}"
