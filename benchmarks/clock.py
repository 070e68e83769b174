"""What the clock of utils.timing can tell apart, measured on the GPU it will be used on.

    python benchmarks/clock.py [--json FILE] [--only SECTION ...] [--comparisons 160]

    same       A/A: the same code on both sides, sizes from 5 µs to 1 ms; none may be called FASTER or SLOWER
    slower     a kernel slowed by three per cent, 50 µs and up; at least 95 in 100 must be called SLOWER (what was
               planted is measured in one process and printed)
    durations  medians against the kernels' own durations, ncu's gpu__time_duration where it is installed, else CUPTI's:
               within two per cent for twenty kernels of a quarter of a millisecond and more; short ones are shown
    tricks     solutions that hide work from the timer: the GPU tests of tests/timing
    launches   what a launch takes inside an event pair, by process: a chain of small kernels in six processes. The
               interval of a ratio allows for that difference; it must not be larger than what it allows
    wall       seconds that profiling the root workspace takes, with the official baseline and with all

Each section prints a table and ends with what it found; exit code 1 when a section misses its mark. About five minutes
for the first four on an H200; the others run where asked for. Both sides of every comparison are separate processes, as
in a profiling.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from utils.judge.comparing import Tolerance  # noqa: E402
from utils.judge.sandbox import Policy  # noqa: E402
from utils.problem.problem import load_problem  # noqa: E402
from utils.problem.solution import find_solution  # noqa: E402
from utils.timing import kernels, ncu, rounds, statistics  # noqa: E402
from utils.timing.baselines import BaselineSession  # noqa: E402
from utils.timing.run import Options  # noqa: E402
from utils.timing.sessions import TimedSession  # noqa: E402
from utils.timing.sides import BaselineSide, SolutionSide, Stand, Trial  # noqa: E402
from utils.timing.variants import Variant  # noqa: E402

SECTIONS = ("same", "slower", "durations", "tricks", "launches", "wall")
DEVICE = "cuda:0"
MODEL = """
import torch
import torch.nn as nn


class {name}(nn.Module):
    def forward(self, *arguments):
        {body}
"""
INPUTS = """

def get_inputs():
    return {inputs}


def get_init_inputs():
    return []
"""
# Twenty operations of one kernel each, long enough (a quarter of a millisecond and more on an H200) for what an event
# pair holds beside the kernel, about two microseconds of launch, to stay below one per cent; and far beyond the L2
# where they only move memory, so that little depends on how the caches were emptied. All draw on the device.
_BIG = "device='cuda'"
OPERATIONS = {
    "add": ("a[0] + 1", f"[torch.rand(1 << 27, {_BIG})]"),
    "multiply two": ("a[0] * a[1]", f"[torch.rand(1 << 27, {_BIG}), torch.rand(1 << 27, {_BIG})]"),
    "gelu": ("torch.nn.functional.gelu(a[0])", f"[torch.randn(1 << 27, {_BIG})]"),
    "tanh": ("torch.tanh(a[0])", f"[torch.randn(1 << 27, {_BIG})]"),
    "exp half": ("torch.exp(a[0])", f"[torch.randn(1 << 28, {_BIG}, dtype=torch.half)]"),
    "softmax": ("torch.softmax(a[0], -1)", f"[torch.randn(32768, 4096, {_BIG})]"),
    "log softmax": ("torch.log_softmax(a[0], -1)", f"[torch.randn(16384, 8192, {_BIG})]"),
    "layer norm": ("torch.nn.functional.layer_norm(a[0], (1024,))", f"[torch.randn(131072, 1024, {_BIG})]"),
    "sum rows": ("a[0].sum(-1)", f"[torch.randn(32768, 8192, {_BIG})]"),
    "sum columns": ("a[0].sum(0)", f"[torch.randn(32768, 8192, {_BIG})]"),
    "largest of rows": ("a[0].amax(-1)", f"[torch.randn(32768, 8192, {_BIG})]"),
    "cumulative sum": ("a[0].cumsum(-1)", f"[torch.randn(8192, 16384, {_BIG})]"),
    "transpose": ("a[0].t().contiguous()", f"[torch.randn(16384, 8192, {_BIG})]"),
    "concatenate": ("torch.cat([a[0], a[1]])", f"[torch.rand(1 << 26, {_BIG}), torch.rand(1 << 26, {_BIG})]"),
    "max pool": ("torch.nn.functional.max_pool2d(a[0], 2)", f"[torch.randn(256, 64, 112, 112, {_BIG})]"),
    "average pool": ("torch.nn.functional.avg_pool2d(a[0], 3)", f"[torch.randn(256, 64, 112, 112, {_BIG})]"),
    "matmul fp32": ("a[0] @ a[1]", f"[torch.rand(2048, 2048, {_BIG}), torch.rand(2048, 2048, {_BIG})]"),
    "matmul bf16": ("a[0] @ a[1]", f"2 * [torch.rand(8192, 8192, {_BIG}, dtype=torch.bfloat16)]"),
    "batched matmul": ("torch.bmm(a[0], a[1])", f"2 * [torch.rand(64, 512, 512, {_BIG})]"),
    "relu in half": ("torch.relu(a[0])", f"[torch.randn(1 << 28, {_BIG}, dtype=torch.half)]"),
}
# Shown beside them: how much of a short call's time is launch. No mark is set for these.
SHORT = {
    "one element": ("a[0] + 1", f"[torch.rand(1, {_BIG})]"),
    "add, 8 MB": ("a[0] + 1", f"[torch.rand(1 << 20, {_BIG})]"),
    "add, 64 MB": ("a[0] + 1", f"[torch.rand(1 << 23, {_BIG})]"),
    "add, 128 MB": ("a[0] + 1", f"[torch.rand(1 << 24, {_BIG})]"),
    "softmax, 128 MB": ("torch.softmax(a[0], -1)", f"[torch.randn(4096, 4096, {_BIG})]"),
    "matmul fp32, 512": ("a[0] @ a[1]", f"2 * [torch.rand(512, 512, {_BIG})]"),
}


class Bench:
    """One solution process and one baseline process that run the same forward, fed with different inputs."""

    def __init__(self, folder: Path, body: str, stack: ExitStack) -> None:
        self.folder = folder
        self._body = body
        (folder / "solution.py").write_text(MODEL.format(name="ModelNew", body=body))
        first = self.problem("[torch.rand(16)]", "first")
        self.session = TimedSession(find_solution(None, folder / "solution.py"), DEVICE, policy=Policy(hide=(folder,)))
        stack.callback(self.session.close)
        self.baseline = BaselineSession(first, DEVICE, "default")
        stack.callback(self.baseline.close)
        self.session.ready()
        self.baseline.ready()

    def problem(self, inputs: str, name: str) -> Path:
        path = self.folder / f"{name}.py"
        path.write_text(MODEL.format(name="Model", body=self._body) + INPUTS.format(inputs=inputs))
        return path

    def trial(self, inputs: str, name: str, seed: int = 1) -> Trial:
        return Trial(load_problem(self.problem(inputs, name)), torch.device(DEVICE), seed)

    @contextmanager
    def stands(self, ours: Trial, theirs: Trial) -> Iterator[tuple[Stand, Stand]]:
        """Both processes with their inputs in place; the memory is given back afterwards."""
        new, base = Stand(self.session, ours, 1), Stand(self.baseline, theirs, 1)
        built = self.baseline.prepare(Variant("eager"), base.inputs)
        if built.error:
            raise SystemExit(f"the baseline could not be built: {built.error}")
        yield new, base
        for stand in (new, base):
            stand.inputs.release()
            stand.outputs.release()

    def compared(self, new: Stand, base: Stand, budget: float, seed: int, launches: int = 1) -> statistics.Ratio | None:
        """One comparison as a profiling makes it, with memory placed anew on both sides first."""
        new.inputs.move()
        base.inputs.move()
        side = SolutionSide(new, seed, Tolerance(1e-2, 1e-2))
        other = BaselineSide(base, self.baseline, Variant("eager"))
        taken = rounds.sample(side, [other], budget=budget, seed=seed, decisive=[other.name])
        return statistics.ratio(
            taken.samples(side.name), taken.samples(other.name), seed=seed, launches=(launches, launches)
        )


def same(comparisons: int, budget: float) -> dict[str, Any]:
    """A/A: an addition on growing vectors, matrix products, and chains of small kernels; about 5 µs to 1 ms in all.

    The chains show what launches cost inside an event pair, and whether it differs between two processes.
    """
    inputs = {f"{1 << power}": 1 for power in (10, 18, 20, 22, 23, 24, 25, 26)}
    inputs |= {f"{side}, {side}": 1 for side in (2048, 3072)}
    inputs |= {f"{length}, 1, 16384": length for length in (4, 16)}
    body = (
        "x = arguments[0]\n        if x.dim() == 2: return x @ x\n        if x.dim() == 1: return x + 1\n"
        "        for part in range(len(x)): x = x + 1\n        return x"
    )
    rows, each = [], max(1, comparisons // len(inputs))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(folder, body, stack)
        for number, (drawn, launches) in enumerate(inputs.items()):
            trial = bench.trial(_rand(drawn), f"size{number}")
            with bench.stands(trial, trial) as (new, base):
                for repeat in range(each):
                    ratio = bench.compared(new, base, budget, 1000 * number + repeat, launches)
                    rows.append({"input": drawn, **_ratio(ratio)})
                times = [new.call().device_ms[0] for _ in range(9)]
            _print(f"rand({drawn})", times, [row for row in rows if row["input"] == drawn])
    wrong = [row for row in rows if row["verdict"] in (statistics.FASTER, statistics.SLOWER)]
    print(f"same: {len(wrong)} of {len(rows)} A/A comparisons called FASTER or SLOWER (none may be)\n")
    return {"rows": rows, "wrong": len(wrong), "met": not wrong}


def launches(processes: int = 6, kernels_in_chain: int = 16) -> dict[str, Any]:
    """Medians of one chain of small kernels in several processes that take turns; their range, by launch."""
    body = "x = arguments[0]\n        for part in range(len(x)): x = x + 1\n        return x"
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(folder, body, stack)
        trial = bench.trial(_rand(f"{kernels_in_chain}, 1, 16384"), "chain")
        solution = find_solution(None, folder / "solution.py")
        stands = []
        for _ in range(processes):
            session = TimedSession(solution, DEVICE, policy=Policy(hide=(folder,)))
            stack.callback(session.close)
            session.ready()
            stands.append(Stand(session, trial, 1))
        samples: list[list[float]] = [[] for _ in stands]
        for turn in range(6):
            for times, stand in zip(samples, stands, strict=True):
                taken = [stand.call().device_ms[0] for _ in range(12)]
                times += taken if turn else []  # the first turn warms up
    medians = [statistics.median(times) for times in samples]
    apart = (max(medians) - min(medians)) / kernels_in_chain
    print(
        f"a chain of {kernels_in_chain} in {processes} processes: "
        + ", ".join(f"{1e3 * m:.2f}" for m in medians)
        + " µs"
    )
    print(f"launches: {1e3 * apart:.3f} µs apart per launch (at most {1e3 * statistics.FLOOR_MS:.3f} is allowed for)\n")
    return {"medians": medians, "samples": samples, "apart": apart, "met": apart <= statistics.FLOOR_MS}


def slower(comparisons: int, budget: float) -> dict[str, Any]:
    """The same addition over three per cent more time's worth of elements on the solution's side, 50 µs to 1 ms.

    One kernel, so that no gap between launches is timed; elements are fine enough to slow it exactly. What was planted
    is measured by the baseline's process alone, both lengths in turns, and printed beside what the clock found.
    """
    rows, lengths = [], [0.05, 0.1, 0.2, 0.5, 1.0]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(folder, "return arguments[0] + 1", stack)
        few, many = 1 << 24, 1 << 27
        low, high = (_add_ms(bench, count) for count in (few, many))
        per_element, fixed = (high - low) / (many - few), low - few * (high - low) / (many - few)
        for number, length in enumerate(lengths):
            counts = [round((factor * length - fixed) / per_element) for factor in (1.0, 1.03)]
            theirs, ours = (
                bench.trial(_rand(count), f"{name}{number}")
                for count, name in zip(counts, ("base", "slow"), strict=True)
            )
            planted = _planted(bench, theirs, ours)
            with bench.stands(ours, theirs) as (new, base):
                for repeat in range(max(1, comparisons // len(lengths))):
                    ratio = bench.compared(new, base, budget, 5000 + 100 * number + repeat)
                    rows.append({"ms": length, "planted": planted, **_ratio(ratio)})
                times = [base.call().device_ms[0] for _ in range(9)]
            said = f"{length * 1e3:.0f} µs +{100 * planted - 100:.2f} %"
            _print(said, times, [row for row in rows if row["ms"] == length])
    found = sum(row["verdict"] == statistics.SLOWER for row in rows)
    need = math.ceil(0.95 * len(rows))
    print(f"slower: {found} of {len(rows)} recognised as SLOWER (at least {need} must be)\n")
    return {"rows": rows, "recognised": found, "met": found >= need}


def durations() -> dict[str, Any]:
    """Medians of the clock beside the kernels' own durations: both under the clocks the GPU chooses, both with caches
    emptied before. What an event pair holds beside the kernel is the excess, in microseconds."""
    asked = {**OPERATIONS, **SHORT}
    body = "a = arguments[1:]\n        " + "\n        ".join(
        f"if arguments[0] == {name!r}: return {expression}" for name, (expression, _) in asked.items()
    )
    tool = ncu.find()
    rows: list[dict[str, Any]] = [{"operation": name, "short": name in SHORT} for name in asked]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(folder, body, stack)

        def each(take: Callable[[dict[str, Any], Stand], None], session: TimedSession) -> None:
            for number, row in enumerate(rows):
                name = row["operation"]
                stand = Stand(session, bench.trial(f"[{name!r}, *{asked[name][1]}]", f"operation{number}"), 1)
                take(row, stand)
                stand.inputs.release()
                stand.outputs.release()

        # All of one before any of the other: a profiler once attached slows every launch after it.
        idle = _empty_pair_ms(torch.device(DEVICE))
        each(_clocked, bench.baseline)
        each(_recorded, bench.baseline)
        said = "ncu is not installed here: CUPTI's durations, caches warm, stand in for it"
        if tool:
            said = _under_ncu(tool, folder, each, rows)
    measure = "ncu_ms" if all(row.get("ncu_ms") for row in rows) else "cupti_ms"
    print(f"{'operation':>18} {'clock':>10} {measure[:-3]:>10} {'off':>8} {'excess':>10}   ({said})")
    for row in rows:
        row["excess_ms"] = row["ms"] - row[measure]
        row["off"] = row["ms"] / row[measure] - 1 if row[measure] else math.inf
        print(
            f"{row['operation']:>18} {1e3 * row['ms']:>8.1f}µs {1e3 * row[measure]:>8.1f}µs {100 * row['off']:>7.2f}% "
            f"{1e3 * row['excess_ms']:>8.2f}µs{' in ' + str(row['kernels']) + ' kernels' if row['kernels'] > 1 else ''}"
        )
    judged = [row for row in rows if not row["short"]]
    within = sum(abs(row["off"]) <= 0.02 for row in judged)
    print(
        f"durations: {within} of {len(judged)} within two per cent; an empty pair of events takes {1e3 * idle:.2f} µs, "
        f"the excess is {1e3 * statistics.median([row['excess_ms'] for row in rows]):.2f} µs in the median\n"
    )
    return {
        "rows": rows,
        "measure": measure,
        "said": said,
        "empty_pair_ms": idle,
        "within": within,
        "met": within == len(judged),
    }


def tricks() -> dict[str, Any]:
    """The solutions that hide work from the timer, through pytest."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "gpu",
        "tests/timing/test_timing_tricks.py",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    print("\n".join(done.stdout.splitlines()[-25:]))
    return {"met": done.returncode == 0, "output": done.stdout[-4000:]}


def wall() -> dict[str, Any]:
    """Seconds for the whole command on the root workspace."""
    rows = []
    for modes, limit in (("official", 25.0), ("all", 60.0)):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "utils.profiling", "--baselines", modes], cwd=ROOT, capture_output=True, text=True
        )
        seconds = time.perf_counter() - began
        rows.append({"baselines": modes, "seconds": seconds, "limit": limit, "code": done.returncode})
        print(done.stdout[-3000:])
        print(f"wall: {modes} took {seconds:.1f} s (limit {limit:.0f} s), exit code {done.returncode}\n")
    return {"rows": rows, "met": all(row["seconds"] <= row["limit"] and row["code"] in (0, 1) for row in rows)}


def _rand(shape: object) -> str:
    """Inputs of one tensor, drawn on the device: a processor takes seconds for what the GPU adds in one millisecond."""
    return f"[torch.rand({shape}, device='cuda')]"


def _add_ms(bench: Bench, count: int) -> float:
    trial = bench.trial(_rand(count), f"add{count}")
    with bench.stands(trial, trial) as (_, base):
        for _ in range(5):
            base.call()
        return statistics.median([base.call().device_ms[0] for _ in range(25)])


def _planted(bench: Bench, short: Trial, long: Trial) -> float:
    """Time ratio of two inputs in the baseline's process, called in turns, with memory placed anew now and then."""
    one, two = Stand(bench.baseline, short, 1), Stand(bench.baseline, long, 2)
    bench.baseline.prepare(Variant("eager"), one.inputs)
    bench.baseline.select("eager")
    ratios = []
    for _ in range(8):
        one.inputs.move()
        two.inputs.move()
        pairs = [(one.call().device_ms[0], two.call().device_ms[0]) for _ in range(15)]
        ratios.append(statistics.median([b for _, b in pairs]) / statistics.median([a for a, _ in pairs]))
    for stand in (one, two):
        stand.inputs.release()
        stand.outputs.release()
    return statistics.median(ratios)


def _empty_pair_ms(device: torch.device) -> float:
    """What two events with nothing between them are apart, on a busy stream."""
    from utils.native.timer import DeviceTimer

    timer, times = DeviceTimer(device), []
    for _ in range(50):
        timer.flush_l2()
        timer.delay_us(100.0)
        mark = timer.start()
        timer.stop(mark)
        times.append(timer.elapsed_ms(mark))
    return statistics.median(times)


def _clocked(row: dict[str, Any], stand: Stand) -> None:
    """Adds "ms", the median of the clock."""
    for _ in range(3):
        stand.call()
    row["ms"] = statistics.median([stand.call().device_ms[0] for _ in range(25)])


def _recorded(row: dict[str, Any], stand: Stand) -> None:
    """Adds "cupti_ms", what the profiler says the kernels took, and "kernels", how many there were."""
    events, row["why"] = stand.session.kernels(stand.inputs)
    row["cupti_ms"] = sum(event["us"] for event in events) / 1e3
    row["kernels"] = sum(event["calls"] for event in events if kernels.family(event["name"]) not in ("copy", "fill"))


def _under_ncu(tool: Path, folder: Path, each: Callable[..., None], rows: list[dict[str, Any]]) -> str:
    """Adds "ncu_ms" to the rows; says where the durations come from."""
    options = Options(
        folder / "first.py", find_solution(None, folder / "solution.py"), DEVICE, policy=Policy(sandbox=False)
    )
    session = ncu.NcuSession(tool, options, metrics=(ncu.TIME,))
    try:
        session.ready()
        each(lambda row, stand: session.profiled(stand.inputs), session)
        session.close_politely()
        launches = ncu.parse(session.report().splitlines())
    except Exception as error:
        return f"ncu failed, CUPTI's durations, caches warm, stand in for it ({str(error)[:150]})"
    finally:
        session.close()
    # Launches come in order; how many belong to each operation is known from CUPTI.
    if len(launches) != sum(row["kernels"] for row in rows) or any(launch["ms"] is None for launch in launches):
        return f"ncu saw {len(launches)} kernels, CUPTI {sum(row['kernels'] for row in rows)}: its durations are shown"
    for row in rows:
        mine, launches = launches[: row["kernels"]], launches[row["kernels"] :]
        row["ncu_ms"] = sum(launch["ms"] for launch in mine)
    return "durations by ncu, --clock-control none, --cache-control all"


def _ratio(ratio: statistics.Ratio | None) -> dict[str, Any]:
    if ratio is None:
        return {"verdict": statistics.UNSURE, "ratio": None}
    return {"verdict": statistics.verdict(ratio), "ratio": ratio.value, **asdict(ratio)}


def _print(name: str, times: Sequence[float], rows: Sequence[dict[str, Any]]) -> None:
    said: dict[str, int] = {}
    for row in rows:
        said[row["verdict"]] = said.get(row["verdict"], 0) + 1
    values = sorted(row["ratio"] for row in rows if row["ratio"])
    widths = sorted(row["half_width"] for row in rows if row["ratio"])
    span = (
        f"ratios {values[0]:.4f} to {values[-1]:.4f}, median half width {100 * widths[len(widths) // 2]:.2f} %"
        if values
        else "no ratio"
    )
    print(f"{name:>18} {1e3 * statistics.median(times):>8.1f} µs   {span}   {said}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS[:4]))
    parser.add_argument(
        "--comparisons", type=int, default=160, help="A/A comparisons in all; half as many slowed ones (default 160)"
    )
    parser.add_argument("--budget", type=float, default=0.45, help="seconds of sampling per comparison (default 0.45)")
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    if not torch.cuda.is_available():
        print("benchmarks/clock.py needs an NVIDIA GPU, and torch sees none", file=sys.stderr)
        return 2
    work = {
        "same": lambda: same(asked.comparisons, asked.budget),
        "slower": lambda: slower(asked.comparisons // 2, asked.budget),
        "durations": durations,
        "tricks": tricks,
        "launches": launches,
        "wall": wall,
    }
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(0), "torch": torch.__version__}
    for name in asked.only:
        began = time.perf_counter()
        found[name] = work[name]()
        found[name]["seconds"] = time.perf_counter() - began
        print(f"[{name}: {found[name]['seconds']:.0f} s, {'met' if found[name]['met'] else 'NOT met'}]\n", flush=True)
        if asked.json:
            Path(asked.json).write_text(json.dumps(found, indent=1))
    return 0 if all(found[name]["met"] for name in asked.only) else 1


if __name__ == "__main__":
    sys.exit(main())
