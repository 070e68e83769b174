"""`python -m utils.profiling`: is the solution faster than torch.compile by the target, and what bounds it?

Verification comes first: what does not compute the same function is not timed as a success. docs/profiling.md says how
times are taken, what the verdicts mean, and what every field of --json holds.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # `python -m` puts the current folder first on the path: a torch.py lying there would become torch. Only this
    # package is wanted from the repository, and it is found already.
    _NOT_SEARCHED = {"", os.getcwd(), __file__.rsplit("/", 2)[0]}
    sys.path[:] = [entry for entry in sys.path if entry not in _NOT_SEARCHED]

import argparse
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils import history
from utils.judge import devices
from utils.judge.extension import find_extension
from utils.judge.sandbox import Policy
from utils.present import console, outcome, record
from utils.present.options import count, positive, seed, tolerance
from utils.present.outcome import CannotTell
from utils.problem.solution import Solution, find_solution
from utils.problem.workspace import Workspace, find_workspace
from utils.timing.units import rate_text, ratio_text, speed_text, time_text
from utils.timing.variants import parse_modes

if TYPE_CHECKING:
    from utils.problem.problem import Problem


def main(argv: Sequence[str]) -> int:
    begun = time.monotonic()
    asked = parser().parse_args(argv)
    modes = parse_modes(asked.baselines)
    workspace = find_workspace(asked.workspace) if asked.workspace or not asked.solution else None
    solution = find_solution(workspace, asked.solution)
    device = find_gpu(asked.device, solution)

    # Only from here on is torch needed, and some seconds go by.
    from utils.judge.verify import Request, verify
    from utils.timing.gpu import Monitor
    from utils.timing.lock import gpu_lock
    from utils.timing.run import Options, Verified, profile

    seed = asked.seed if asked.seed is not None else secrets.randbits(62)
    request = Request(
        workspace=asked.workspace,
        problem=asked.problem,
        solution=asked.solution,
        device=device,
        atol=asked.atol,
        rtol=asked.rtol,
        trials=asked.trials,
        seed=seed,
        train=asked.train,
        timeout=asked.timeout,
        rules=asked.rules,
        sandbox=not asked.no_sandbox,
        require_sandbox=asked.require_sandbox,
    )
    problem = problem_path(asked.problem, workspace, solution)
    extension = find_extension(solution)
    settings = {
        **vars(asked),
        "seed": seed,
        "device": device,
        "baselines": modes,
        "problem": problem,
        "solution": solution.path,
    }
    options = Options(
        problem=problem,
        solution=solution,
        device=device,
        modes=tuple(modes),
        target=asked.target,
        seed=seed,
        budget=asked.budget,
        timeout=asked.timeout,
        build_timeout=asked.build_timeout,
        atol=asked.atol,
        rtol=asked.rtol,
        train=asked.train,
        small=device == "cpu",
        ncu=asked.ncu,
        build_alone=asked.build_alone,
        module=extension.path if extension else None,
        policy=Policy(sandbox=not asked.no_sandbox, require=asked.require_sandbox, hide=(problem.parent,)),
        settings=settings,
    )

    def verified(_: Options, meanwhile: Callable[[Problem], None]) -> Verified:
        done = verify(request, meanwhile=meanwhile)
        # Only now: it imports torch.
        from utils.judge.comparing import Tolerance

        return Verified(
            passed=done.passed,
            reasons=tuple(done.reasons),
            precision_class=done.precision.get("class"),
            tolerance=Tolerance(asked.atol, asked.rtol),
            tolerances=done.study.tolerances if done.study else {},
            random=done.trials is not None and done.trials.random_differs,
            record={
                "verdict": done.verdict,
                "reasons": done.reasons,
                "precision": done.precision,
                "seconds": done.clock.laps,
            },
        )

    uuid = device_uuid(device)
    with gpu_lock(uuid or device, waiting=say_progress), Monitor(uuid) as monitor:
        alone = monitor.refuses_company()
        if alone:
            raise CannotTell(alone)
        written = profile(options, verified, monitor, say_progress, begun)
    return _report(written, asked, workspace.root if workspace else solution.path.parent)


def parser() -> argparse.ArgumentParser:
    """The command line; shared in part by utils.tuning."""
    made = argparse.ArgumentParser(prog="python -m utils.profiling", description=(__doc__ or "").partition("\n\n")[0])
    add_common(made)
    made.add_argument(
        "--baselines",
        default="official",
        help="official (eager and torch.compile; the default), all, or a list such as eager,max-autotune",
    )
    made.add_argument(
        "--target", type=positive, default=0.95, help="time ratio to torch.compile that counts as met (default 0.95)"
    )
    made.add_argument("--trials", type=count, default=5, help="trials of the verification (default 5)")
    made.add_argument(
        "--rules",
        choices=("strict", "relaxed"),
        default="strict",
        help="relaxed turns breaches of policy into warnings",
    )
    made.add_argument("--note", metavar="TEXT", help="what you expect of this version; kept in the workspace's history")
    made.add_argument("--html", metavar="FILE", help="write the report as one HTML file")
    made.add_argument(
        "--ncu", action="store_true", help="also run Nsight Compute on the solution's kernels, where it is installed"
    )
    made.add_argument(
        "--build-timeout",
        type=positive,
        default=300.0,
        metavar="S",
        help="seconds for building one baseline (default 300)",
    )
    made.add_argument("--build-alone", action="store_true", help="build baselines after verification, one at a time")
    return made


def add_common(made: argparse.ArgumentParser) -> None:
    """Options that profiling and tuning share."""
    made.add_argument(
        "--workspace", metavar="DIR", help="folder with model.py and model_new.py (default: the repository)"
    )
    made.add_argument(
        "--problem", metavar="FILE", help="the problem (default: model.py of the workspace, or beside the solution)"
    )
    made.add_argument(
        "--solution", metavar="FILE", help="the solution (default: model_new.py or solution.py of the workspace)"
    )
    made.add_argument("--device", help="cuda or cuda:N (default: the first GPU)")
    made.add_argument(
        "--budget",
        type=positive,
        default=4.0,
        metavar="S",
        help="seconds of timing (default 4); more narrows the interval",
    )
    made.add_argument(
        "--seed", type=seed, help="repeats a run's weights, inputs and order (default: from the operating system)"
    )
    made.add_argument(
        "--atol", type=tolerance, default=1e-2, help="absolute tolerance of the verification (default 1e-2)"
    )
    made.add_argument(
        "--rtol", type=tolerance, default=1e-2, help="relative tolerance of the verification (default 1e-2)"
    )
    made.add_argument("--train", action="store_true", help="both models in train mode")
    made.add_argument("--timeout", type=positive, default=60.0, metavar="S", help="seconds for one call (default 60)")
    made.add_argument("--no-sandbox", action="store_true", help="run the solution in a plain process (for debugging)")
    made.add_argument(
        "--require-sandbox", action="store_true", help="end with an error where a layer of the sandbox cannot be had"
    )
    made.add_argument("--json", metavar="FILE", help="write the whole record, every sample included")


def find_gpu(asked: str | None, solution: Solution) -> str:
    """The CUDA device to use. Raises CannotTell, with one sentence, where there is none."""
    from utils.build.gpus import visible_gpus

    if asked in ("cpu", "sim"):
        raise CannotTell(f"profiling needs a GPU: times on --device {asked} say nothing about one")
    if asked is None and not visible_gpus():
        raise CannotTell(
            "profiling needs an NVIDIA GPU and none is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES); "
            "verification runs without one"
        )
    return devices.choose(asked, solution).device


def device_uuid(device: str) -> str | None:
    """The uuid of a CUDA device, for its lock and for NVML; None where it cannot be known."""
    from utils.build.gpus import visible_gpus

    index = int(device.partition(":")[2] or 0)
    found = visible_gpus()
    return (found[index].uuid or None) if index < len(found) else None


def problem_path(asked: str | None, workspace: Workspace | None, solution: Solution) -> Path:
    """The problem file: the one named, the workspace's, or the one beside the solution. Raises CannotTell where
    there is none."""
    beside = workspace.model if workspace is not None else solution.path.parent / "model.py"
    path = Path(asked).expanduser().resolve() if asked else beside
    if not path.is_file():
        raise CannotTell(f"there is no problem at {path}; give --problem FILE, or write model.py there")
    return path


def say_progress(text: str) -> None:
    """One line on stderr for a step that takes a while."""
    console.err.print(f"{text} ...", style=console.STYLES["note"], markup=False, highlight=False)


def _report(written: Mapping[str, Any], asked: argparse.Namespace, folder: Any) -> int:
    """Prints the result, writes what was asked for, and keeps the history."""
    show(written)
    unkept = history.append(folder, written, asked.note)
    if unkept:
        console.say(unkept, "warn")
    if asked.json:
        record.write(asked.json, written)
    if asked.html:
        from utils.present import report

        report.write(asked.html, record.plain(written))
    return int(written["exit_code"])


def show(written: Mapping[str, Any]) -> None:
    """The result for a person: a table of all sides, the kernels, warnings, and the headline last, where it is read."""
    results = written["results"]
    ours = results.get("solution")
    if ours and ours["summary"]:
        _show_sides(results)
        _show_kernels(results)
        for sentence in results["warnings"]:
            console.say(sentence, "warn")
        for ncu_line in _ncu_lines(results):
            console.say(ncu_line)
    if results.get("seconds"):
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in results["seconds"].items() if seconds >= 0.05)
        console.say(f"seconds: {spent}", "note")
    good = written["exit_code"] == outcome.YES
    for number, sentence in enumerate(written["reasons"]):
        console.say(sentence, ("yes" if good else "no") if number == 0 else None)
    if not ours:
        console.say(f"verdict {written['verdict']}", "yes" if good else "no")


def _show_sides(results: Mapping[str, Any]) -> None:
    """One row a side, narrow enough for eighty columns; what only some sides have is said in sentences below."""
    ours = results["solution"]
    rows: list[list[Any]] = [
        ["solution", time_text(ours["summary"]["median"]), "", "", _percent(ours["limit_reached"])]
    ]
    for row in results["baselines"]:
        if row["ratio"]:
            style = {"FASTER": "pass", "SLOWER": "fail"}.get(row["verdict"])
            factor = f" {speed_text(row['ratio']['value']).split()[0]}" if style else ""
            said = (row["verdict"] + factor, style)
            median = time_text(row["summary"]["median"])
            rows.append([row["key"], median, ratio_text(row["ratio"]), said, _percent(row["limit_reached"])])
    columns = ("variant", "median", "time ratio [99 %]", "solution is", "of limit")
    right = ("median", "time ratio [99 %]", "of limit")
    console.table("time per call, L2 flushed before each", columns, rows, right=right)
    for row in results["baselines"]:
        if not row["ratio"]:
            console.say(f"{row['label']} was not timed: {row['error']}", "note")
    for field, words in (("end_to_end", "end to end, launch included"), ("graph", "as a CUDA graph")):
        sides = [("solution", ours["extra"]), *((row["key"], row["extra"]) for row in results["baselines"])]
        known = [f"{name} {time_text(extra[field])}" for name, extra in sides if extra and extra[field]]
        if known:
            console.say(f"{words}: {', '.join(known)}")
    built = [
        f"{row['key']} {row['build']['seconds']:.1f} s" for row in results["baselines"] if row["ratio"] and row["build"]
    ]
    if built:
        console.say(f"built in: {', '.join(built)}", "note")


def _show_kernels(results: Mapping[str, Any], most: int = 8) -> None:
    if not results["kernels"]:
        if results["kernels_why"]:
            console.say(f"kernels: {results['kernels_why']}", "note")
        return
    width = max(24, console.out.width - 58)
    rows = []
    for row in results["kernels"][:most]:
        whose = (row["family"], "warn" if row["foreign"] else None)
        bandwidth = "" if not row["bytes_per_second"] else rate_text(row["bytes_per_second"], "B/s")
        registers = "" if row["registers"] is None else row["registers"]
        share, occupancy = _percent(row["share"]), _percent(row["occupancy"])
        name = row["name"] if len(row["name"]) <= width else row["name"][: width - 1] + "…"
        rows.append([name, whose, row["calls"], time_text(row["ms"]), share, registers, occupancy, bandwidth])
    columns = ("kernel", "of", "calls", "time", "share", "regs", "occup.", "moves")
    console.table("kernels of one call, as the solution's process tells", columns, rows, right=columns[2:])
    if len(results["kernels"]) > most:
        console.say(f"and {len(results['kernels']) - most} more; --json and --html show all", "note")


def _ncu_lines(results: Mapping[str, Any]) -> list[str]:
    found = results.get("ncu")
    if not found:
        return []
    if found["why"]:
        return [f"Nsight Compute: {found['why']}"]
    return [f"{kernel['name'][:60]}: {sentence}" for kernel in found["kernels"] for sentence in kernel["sentences"]]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


if __name__ == "__main__":
    outcome.run(main)
