"""`python -m utils.gallery [NAMES]`: compiles, checks, verifies and profiles every workspace of the gallery; one table.

Exit 0: all of them verified within the rules and at their target. Exit 1: not all. Exit 2: cannot tell.
"""

from __future__ import annotations

import argparse
import os
import queue
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from utils.build.gpus import visible_gpus
from utils.gallery import plot, summary
from utils.gallery.steps import (
    EXAMPLES,
    Done,
    check_step,
    compile_step,
    gallery_names,
    run_step,
    verdict_step,
)
from utils.present import console, record
from utils.present.options import count, positive
from utils.present.outcome import NO, YES, CannotTell, run
from utils.problem.workspace import Workspace

# Each build runs a few compilers of its own.
_JOBS = max(1, min(8, (os.cpu_count() or 2) // 2))


def main(argv: Sequence[str]) -> int:
    asked = _parser().parse_args(argv)
    names = _names(asked.names)
    if not asked.sim and not visible_gpus():
        raise CannotTell("the gallery is measured on an NVIDIA GPU and none is visible; --sim verifies it without one")
    workspaces = [Workspace(EXAMPLES / name) for name in names]

    # Neither needs the GPU, so they go side by side, and first: beside a profiling they would disturb its times.
    console.err.print(f"compiling and checking {len(names)} workspaces ...", markup=False, highlight=False)
    with ThreadPoolExecutor(max_workers=asked.jobs) as pool:
        readied = list(pool.map(lambda workspace: _ready(workspace, asked), workspaces))
    rows: list[dict[str, Any]] = []
    finished: dict[str, list[Done]] = {}
    writing = threading.Lock()
    devices = _devices(asked)

    def measure(name: str, workspace: Workspace, done: list[Done]) -> None:
        # What does not build, or breaks a rule, is not measured.
        if all(step.exit_code == YES for step in done):
            device = devices.get()
            try:
                console.err.print(f"{name} ...", markup=False, highlight=False)
                done = [*done, _judge(workspace, asked, device)]
            finally:
                devices.put(device)
        with writing:
            # After each workspace, so that a run that is cut short leaves what it knows.
            finished[name] = done
            here = [name for name in names if name in finished]
            rows[:] = [summary.row_of(name, finished[name]) for name in here]
            _write(asked, rows, {name: {step.step: _kept(step) for step in finished[name]} for name in here}, names)

    with ThreadPoolExecutor(max_workers=devices.qsize()) as pool:
        list(pool.map(measure, names, workspaces, readied))

    console.table("", summary.COLUMNS, [summary.cells(row) for row in rows], right=summary.RIGHT)
    for sentence in summary.closing(rows):
        console.say(sentence)
    if asked.markdown:
        Path(asked.markdown).write_text(summary.markdown(rows), encoding="utf-8")
    if asked.plot:
        device = visible_gpus()[0].name if not asked.sim else "simulated"
        Path(asked.plot).write_text(plot.draw(rows, device), encoding="utf-8")
    return YES if all(row["good"] for row in rows) else NO


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m utils.gallery",
        description="Compiles, checks, verifies and profiles the workspaces under examples/, and prints one table. "
        "What an earlier run has done and nothing has changed since is taken from it.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="workspaces under examples/ (default: all)")
    parser.add_argument("--sim", action="store_true", help="verify on the CPU simulator, small shapes; no times")
    parser.add_argument("--baselines", default="all", help="as for utils.profiling (default: all)")
    parser.add_argument(
        "--budget", type=positive, default=4.0, metavar="S", help="seconds of timing for each (default 4)"
    )
    parser.add_argument("--trials", type=count, default=5, metavar="N", help="trials of each verification (default 5)")
    parser.add_argument("--fresh", action="store_true", help="do everything anew")
    parser.add_argument(
        "--jobs", type=count, default=_JOBS, metavar="N", help=f"builds and checks side by side (default here {_JOBS})"
    )
    parser.add_argument(
        "--gpus",
        type=count,
        default=1,
        metavar="N",
        help="GPUs that measure side by side, a workspace each (default 1: nothing shares the processor with a timing)",
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=900.0,
        metavar="S",
        help="seconds for one command on one workspace (default 900)",
    )
    parser.add_argument("--json", metavar="FILE", help="write every row, and the records they are made of")
    parser.add_argument("--markdown", metavar="FILE", help="write the table as Markdown")
    parser.add_argument("--plot", metavar="FILE", help="write the chart as SVG")
    return parser


def _names(asked: Sequence[str]) -> list[str]:
    """The workspaces to run. Raises CannotTell for a name that is not one, or when there is none."""
    known = gallery_names()
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise CannotTell(f"no workspace {', '.join(unknown)} in examples/; there are {', '.join(known) or 'none'}")
    if not known:
        raise CannotTell(f"there is no workspace with kernels in {EXAMPLES}")
    return list(asked) or known


def _ready(workspace: Workspace, asked: argparse.Namespace) -> list[Done]:
    """Compiled, and checked when that succeeds."""
    done: list[Done] = []
    for step in (compile_step(workspace, asked.sim), check_step(workspace)):
        if all(before.exit_code == YES for before in done):
            done.append(run_step(workspace, step, fresh=asked.fresh, timeout=asked.timeout))
    return done


def _devices(asked: argparse.Namespace) -> queue.SimpleQueue[dict[str, str]]:
    """What each device that may measure adds to the environment; on the simulator, where all processors are one, {}."""
    devices: queue.SimpleQueue[dict[str, str]] = queue.SimpleQueue()
    gpus = [] if asked.sim or asked.gpus == 1 else visible_gpus()[: asked.gpus]
    for gpu in gpus:
        devices.put({"CUDA_VISIBLE_DEVICES": gpu.uuid})
    if not gpus:
        devices.put({})
    return devices


def _judge(workspace: Workspace, asked: argparse.Namespace, device: Mapping[str, str]) -> Done:
    """The verdict: a profiling, or a verification on the simulator."""
    extra = ["--trials", str(asked.trials)]
    if not asked.sim:
        extra += ["--baselines", asked.baselines, "--budget", str(asked.budget)]
    step = verdict_step(workspace, asked.sim, extra)
    return run_step(workspace, step, fresh=asked.fresh, timeout=asked.timeout, environment=device)


def _kept(step: Done) -> dict[str, Any]:
    return {
        "exit_code": step.exit_code,
        "resumed": step.resumed,
        "record": step.record,
        "output": step.output if step.record is None else "",
    }


def _write(asked: argparse.Namespace, rows: list[dict[str, Any]], details: dict[str, Any], names: list[str]) -> None:
    if not asked.json:
        return
    good = len(rows) == len(names) and all(row["good"] for row in rows)
    record.write(
        asked.json,
        record.envelope(
            "gallery",
            "ALL" if good else "NOT ALL",
            YES if good else NO,
            summary.closing(rows),
            simulated=asked.sim,
            settings=vars(asked) | {"names": names},
            results={"rows": rows, "steps": details},
        ),
    )


if __name__ == "__main__":
    run(main)
