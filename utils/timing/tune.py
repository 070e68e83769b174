"""The sweep behind `python -m utils.tuning`: one call at a time, each value verified and then timed in rounds.

All values run in one process, through a copy of the solution's file that looks its configurations up in a table, so
that
they differ in nothing else. For each call in turn every value is tried while the other calls keep their best so far; a
value takes over only when it is FASTER by the clock's own definition. Calls that influence one another would need a
full
grid; the last comparison, best against original, says what the steps came to together.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from utils.judge.comparing import Tolerance
from utils.judge.failure import RunnerFailed
from utils.judge.sandbox import Layers
from utils.judge.untouched import Untouched
from utils.present.outcome import CannotTell
from utils.problem.solution import Solution
from utils.timing import rounds, statistics
from utils.timing.gpu import Monitor
from utils.timing.rounds import Batch, SideFailed
from utils.timing.run import Options
from utils.timing.sessions import TimedSession
from utils.timing.sides import NotSame, Stand, Trial
from utils.timing.sites import TABLE, Site, rewritten

# Values tried where nothing says how many there are; the first one refused after one that was taken ends the row.
_MOST_VALUES = 32
_CHECKS = 4


@dataclass
class Row:
    """One value of one call. state: "right", "wrong", "refused" or "crashed"; `why` explains all but the first."""

    site: str
    value: int
    state: str
    why: str = ""
    ms: float | None = None
    ratio: statistics.Ratio | None = None  # to the value in force when this call was swept
    verdict: str = ""
    chosen: bool = False


@dataclass
class Swept:
    """What came of it. `best`: value by call; `gain`: best against original, None where nothing changed."""

    rows: list[Row] = field(default_factory=list)
    start: dict[str, int] = field(default_factory=dict)
    best: dict[str, int] = field(default_factory=dict)
    gain: statistics.Ratio | None = None
    turns: dict[str, Any] = field(default_factory=dict)


def sweep(
    options: Options,
    sites: Sequence[Site],
    grid: Mapping[str, Sequence[int]],
    monitor: Monitor,
    tell: Callable[[str], None] = lambda text: None,
) -> Swept:
    """Tries `grid[site.key]` (or 0, 1, 2, ... until one is refused) for every site. Raises CannotTell without a
    reference."""
    import torch

    from utils.problem.problem import load_problem

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernel-workbench-tuning-")))
        start = {site.key: site.value if site.value is not None else 0 for site in sites}
        copy = _copy(options.solution, sites, start, folder)
        trial = Trial(
            load_problem(options.problem),
            torch.device(options.device),
            options.seed,
            train=options.train,
            small=options.small,
        )
        # No solution was started yet.
        untouched = Untouched(options.problem)
        bench = _Bench(replace(options, solution=copy), trial, stack)
        stack.callback(lambda: untouched.settle(bench.layers, tell))
        done = Swept(start=start, best=dict(start))
        for site in sites:
            tell(f"trying {site.key}")
            _sweep_one(bench, site, list(grid.get(site.key, ())), done, options, monitor)
        if done.best != done.start and bench.works(done.start):
            tell("comparing the best with the original")
            taken = _time(bench, {"best": done.best, "original": done.start}, "best", options, monitor)
            done.gain = statistics.ratio(taken.samples("best"), taken.samples("original"), seed=options.seed)
            done.turns["best against original"] = taken.turns
        return done


def _sweep_one(bench: _Bench, site: Site, values: list[int], done: Swept, options: Options, monitor: Monitor) -> None:
    """All values of one call; sets done.best[site.key]."""
    current = done.best[site.key]
    right: dict[int, Row] = {}
    for value in values or range(_MOST_VALUES):
        row = bench.verified(site, value, done.best)
        done.rows.append(row)
        if row.state == "right":
            right[value] = row
        elif row.state == "refused" and not values and right:
            done.rows.pop()
            break
        elif row.state in ("refused", "crashed") and not values and not right and value >= 1:
            break
    if current not in right:
        row = bench.verified(site, current, done.best)
        if row.state == "right":
            done.rows.append(row)
            right[current] = row
    if not right:
        return
    anchor = current if current in right else min(right)
    names = {f"{site.key}={value}": {**done.best, site.key: value} for value in right}
    taken = _time(bench, names, f"{site.key}={anchor}", options, monitor)
    done.turns[site.key] = taken.turns
    best = anchor
    for value, row in right.items():
        name = f"{site.key}={value}"
        summary = statistics.summary(taken.samples(name)) if name in taken.turns else None
        if summary is None:
            row.state, row.why = "wrong", taken.failed.get(name, "no usable time")
            continue
        row.ms = summary.median
        if value != anchor:
            row.ratio = statistics.ratio(taken.samples(name), taken.samples(f"{site.key}={anchor}"), seed=options.seed)
            row.verdict = statistics.verdict(row.ratio)
        faster = row.verdict == statistics.FASTER
        if faster and (best == anchor or (row.ms < (right[best].ms or 0.0))):
            best = value
    right[best].chosen = True
    done.best[site.key] = best


def _time(
    bench: _Bench, names: Mapping[str, Mapping[str, int]], anchor: str, options: Options, monitor: Monitor
) -> rounds.Sampled:
    sides = {name: _Side(bench, name, values) for name, values in names.items()}
    others = [side for name, side in sides.items() if name != anchor]
    # Time for the floor of rounds grows with the number of values.
    budget = options.budget * max(1.0, len(sides) / 4)
    return rounds.sample(
        sides[anchor],
        others,
        budget=budget,
        seed=options.seed,
        decisive=[s.name for s in others],
        throttled=monitor.throttled,
    )


class _Bench:
    """The session that all values share; started anew when a value takes it down."""

    def __init__(self, options: Options, trial: Trial, stack: ExitStack) -> None:
        self.options, self.trial, self._stack = options, trial, stack
        self.default = Tolerance(options.atol, options.rtol)
        self._stand: Stand | None = None
        self.layers = Layers()

    @property
    def stand(self) -> Stand:
        if self._stand is None or not self._stand.session.alive:
            options = self.options
            session = TimedSession(
                options.solution, options.device, module=options.module, policy=options.policy, timeout=options.timeout
            )
            self._stack.callback(session.close)
            session.ready()
            self.layers = session.process.layers
            self._stand = Stand(session, self.trial, options.seed)
        return self._stand

    def choose(self, values: Mapping[str, int]) -> None:
        self.stand.session.tune(TABLE, values)

    def verified(self, site: Site, value: int, others: Mapping[str, int]) -> Row:
        """A few calls, each on other inputs and compared with the reference."""
        try:
            self.choose({**others, site.key: value})
            for _ in range(_CHECKS):
                self.stand.relocate()
                found = self.stand.compared(self.stand.call(), {}, self.default)
                if not found.passed:
                    return Row(site.key, value, "wrong", found.sentences()[0])
        except NotSame as failed:
            return Row(site.key, value, "wrong", str(failed))
        except RunnerFailed as failed:
            if failed.kind == "harness":
                raise CannotTell(failed.sentence) from None
            return Row(
                site.key,
                value,
                "refused" if failed.alive and failed.kind == "exception" else "crashed",
                failed.sentence,
            )
        return Row(site.key, value, "right")

    def works(self, values: Mapping[str, int]) -> bool:
        try:
            self.choose(values)
            return self.stand.compared(self.stand.call(), {}, self.default).passed
        except (RunnerFailed, NotSame):
            return False


class _Side:
    """One set of values as a side of the rounds; now and then its output is compared."""

    def __init__(self, bench: _Bench, name: str, values: Mapping[str, int]) -> None:
        self.bench, self.name, self.values = bench, name, values

    def run(self, calls: int) -> Batch:
        samples, wall = [], 0.0
        try:
            self.bench.choose(self.values)
            self.bench.stand.relocate()
            for number in range(calls):
                called = self.bench.stand.call()
                samples.append(called.device_ms[0])
                wall += called.wall_s
                if number == 0 and not self.bench.trial.stateful:
                    found = self.bench.stand.compared(called, {}, self.bench.default)
                    if not found.passed:
                        raise SideFailed(found.sentences()[0])
        except (RunnerFailed, NotSame) as failed:
            raise SideFailed(str(failed)) from failed
        return Batch(tuple(samples), wall)


def _copy(solution: Solution, sites: Sequence[Site], values: Mapping[str, int], folder: Path) -> Solution:
    """The solution with its choices in a table, in `folder`, with the Python files it may import beside it."""
    from utils.judge.staging import local_modules

    for path in local_modules(solution.path)[0]:
        target = folder / path.relative_to(solution.path.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    target = folder / solution.path.name
    target.write_text(rewritten(solution.path.read_text(encoding="utf-8"), sites, values), encoding="utf-8")
    return Solution(solution.kind, target, solution.workspace)
