"""`python -m utils.tuning`: which `config` of each binding is fastest for this problem? Every value is verified first.

Calls of bindings with an integer parameter `config` are found in the solution's file. All values are tried in one
process with the clock of utils.profiling; the answer is a table, and the calls to put into the file.
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from utils.judge.extension import find_extension
from utils.judge.sandbox import Policy
from utils.present import console, outcome, record
from utils.present.outcome import CannotTell
from utils.problem.solution import find_solution
from utils.problem.workspace import find_workspace
from utils.profiling import add_common, device_uuid, find_gpu, problem_path, say_progress
from utils.timing.sites import Site, find_sites
from utils.timing.units import speed_text, time_text

if TYPE_CHECKING:
    from utils.timing.tune import Swept


def main(argv: Sequence[str]) -> int:
    made = argparse.ArgumentParser(prog="python -m utils.tuning", description=(__doc__ or "").partition("\n\n")[0])
    add_common(made)
    made.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="NAME=0,1,2",
        help="values for the calls of one function, or of one call as NAME:LINE; may be repeated "
        "(default: 0, 1, 2, ... until one is refused)",
    )
    asked = made.parse_args(argv)
    workspace = find_workspace(asked.workspace) if asked.workspace or not asked.solution else None
    solution = find_solution(workspace, asked.solution)
    sites = find_sites(solution)
    if not sites:
        raise CannotTell(
            f"{solution.path.name} calls no binding with an integer parameter `config`; give a launcher one that "
            "chooses among "
            'template instantiations, and register it with py::arg("config") = 0'
        )
    grid = parse_grid(asked.grid, sites)
    sites = [site for site in sites if not asked.grid or site.key in grid]
    device = find_gpu(asked.device, solution)

    from utils.timing.gpu import Monitor
    from utils.timing.lock import gpu_lock
    from utils.timing.run import Options
    from utils.timing.tune import sweep

    problem = problem_path(asked.problem, workspace, solution)
    extension = find_extension(solution)
    seed = asked.seed if asked.seed is not None else secrets.randbits(62)
    options = Options(
        problem=problem,
        solution=solution,
        device=device,
        seed=seed,
        budget=asked.budget,
        timeout=asked.timeout,
        train=asked.train,
        atol=asked.atol,
        rtol=asked.rtol,
        module=extension.path if extension else None,
        policy=Policy(sandbox=not asked.no_sandbox, require=asked.require_sandbox, hide=(problem.parent,)),
    )
    uuid = device_uuid(device)
    with gpu_lock(uuid or device, waiting=say_progress), Monitor(uuid) as monitor:
        alone = monitor.refuses_company()
        if alone:
            raise CannotTell(alone)
        swept = sweep(options, sites, grid, monitor, say_progress)
    return _report(
        swept,
        sites,
        asked,
        {**vars(asked), "seed": seed, "device": device, "problem": problem, "solution": solution.path},
    )


def parse_grid(texts: Sequence[str], sites: Sequence[Site]) -> dict[str, list[int]]:
    """`NAME=0,1,2` and `NAME:LINE=0,1,2` as values by site. Raises CannotTell for what names no call or holds no
    integers."""
    grid: dict[str, list[int]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        meant = [site for site in sites if name in (site.function, site.key)]
        if not meant:
            raise CannotTell(
                f"--grid {text}: there is no call of {name!r} with a config; there are "
                f"{', '.join(site.key for site in sites)}"
            )
        try:
            numbers = [int(value) for value in values.split(",")] if equals else []
        except ValueError:
            numbers = []
        if not numbers:
            raise CannotTell(f"--grid {text}: give integers, as in {name}=0,1,2")
        for site in meant:
            grid[site.key] = list(dict.fromkeys(numbers))
    return grid


def _report(swept: Swept, sites: Sequence[Site], asked: argparse.Namespace, settings: Mapping[str, Any]) -> int:
    rows = []
    for row in swept.rows:
        good = row.state == "right"
        rows.append(
            [
                row.site,
                row.value,
                (row.state, "pass" if good else "fail"),
                time_text(row.ms) if good else "",
                "" if row.ratio is None else speed_text(row.ratio.value),
                row.verdict,
                ("best", "yes") if row.chosen else "",
                row.why[:100],
            ]
        )
    console.table(
        "config by config",
        ("call", "config", "result", "time", "against the present", "verdict", "", ""),
        rows,
        right=("config", "time"),
    )
    chosen = {row.site for row in swept.rows if row.chosen}
    changed = [site for site in sites if site.key in chosen and swept.best[site.key] != swept.start[site.key]]
    reasons = []
    lost = [site.key for site in sites if site.key not in chosen]
    if lost:
        reasons.append(f"no config of {', '.join(lost)} computes the same function as Model")
    elif not changed:
        reasons.append("the configs in use are the best ones, or none is faster by more than the clock can tell")
    else:
        gain = "" if swept.gain is None else f": together {speed_text(swept.gain.value)} than before"
        reasons.append(f"better configs were found{gain}")
    calls = [
        {"line": site.line, "config": swept.best[site.key], "call": site.with_value(swept.best[site.key])}
        for site in changed
    ]
    console.say(reasons[0], "no" if lost else "yes")
    for call in calls:
        console.say(f"  line {call['line']}: {call['call']}")
    code = outcome.NO if lost else outcome.YES
    if asked.json:
        results = {
            "rows": [asdict(row) for row in swept.rows],
            "start": swept.start,
            "best": swept.best,
            "gain": asdict(swept.gain) if swept.gain else None,
            "calls": calls,
            "turns": {
                key: {name: [asdict(turn) for turn in turns] for name, turns in sides.items()}
                for key, sides in swept.turns.items()
            },
        }
        verdict = "NONE" if lost else "BETTER" if changed else "BEST"
        record.write(asked.json, record.envelope("tuning", verdict, code, reasons, settings=settings, results=results))
    return code


if __name__ == "__main__":
    outcome.run(main)
