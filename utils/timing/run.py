"""One profiling from start to end: processes side by side, verification first, then rounds, then what explains them.

verify        does the solution compute the same function? Nothing is timed as a success before that
baselines     built meanwhile, one process per precision and mode (utils.timing.building)
rounds        solution and baselines in turns, until the evidence suffices
witness       the judge's wall clock against the reported times
explanation   end-to-end and graph times, speed of light, kernels, Nsight Compute
"""

from __future__ import annotations

import platform
import random
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.judge.clock import Clock
from utils.judge.failure import RunnerFailed
from utils.judge.sandbox import Policy
from utils.judge.thrift import Thrift, needed
from utils.judge.untouched import Untouched
from utils.present import outcome
from utils.present.outcome import CannotTell
from utils.present.record import envelope
from utils.problem.solution import Solution
from utils.timing import kernels, result, rounds, witness, work
from utils.timing.building import Baselines
from utils.timing.gpu import Monitor
from utils.timing.result import SMALL_MS, SOLUTION, Evidence, Extra
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, NotSame, SolutionSide, Stand, Trial
from utils.timing.variants import AS_IT_COMES, OFFICIAL, Variant, precision_for
from utils.timing.work import walk

if TYPE_CHECKING:
    from utils.judge.comparing import Tolerance
    from utils.problem.problem import Problem

PASS, FAIL, REFUSED = "PASS", "FAIL", "REFUSED"
# Up to here (milliseconds) end-to-end and graph times are taken for every side, beyond it for the two that matter.
_EXTRA_MS = 5.0


@dataclass(frozen=True)
class Options:
    """Everything that steers a profiling. budget: seconds of sampling. device: a torch device string."""

    problem: Path
    solution: Solution
    device: str
    modes: tuple[str, ...] = ("eager", OFFICIAL)
    target: float = 0.95
    seed: int = 0
    budget: float = 4.0
    build_timeout: float = 300.0
    timeout: float = 60.0
    atol: float = 1e-2
    rtol: float = 1e-2
    train: bool = False
    small: bool = False
    ncu: bool = False
    # Build the baselines after verification, one at a time: slower, and nothing disturbs the compiler's own timings.
    build_alone: bool = False
    # Keep fewer copies of the inputs on the device.
    thrift: Thrift = Thrift.NONE
    module: Path | None = None
    policy: Policy = field(default_factory=Policy)
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Of workbench and problem, before anything of the solution ran.
    digests: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verified:
    """What verification found. `tolerances` by output path, as verification tightened them.

    random: the solution draws other random numbers than the reference, from the same distribution, so that outputs
    cannot be compared call by call.
    """

    passed: bool
    reasons: tuple[str, ...]
    precision_class: str | None
    tolerance: Tolerance
    tolerances: Mapping[str, Tolerance] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    random: bool = False


# Calls what it is given once, with the problem, when its own runner is starting: there is time then.
Verify = Callable[[Options, Callable[["Problem"], None]], Verified]


@dataclass
class _Ground:
    """What the judge knows before anything is timed. `trial` once the problem is loaded; where memory is short, once
    the verification is over, which needs all of it for its checks."""

    options: Options
    seeds: Mapping[str, int]
    trial: Trial | None = None
    verified: bool = False

    def lay(self, problem: Problem, session: TimedSession, bases: Baselines) -> None:
        """Makes the trial, tells the baselines, and settles what that shows."""
        import torch

        from utils.judge.shortage import give_back

        options = self.options
        device = torch.device(options.device)
        trial = Trial(problem, device, self.seeds["trial"], train=options.train, small=options.small)
        if _memory_short(trial, options.device, 3 + len(bases.sessions)):
            # Every session keeps copies of its own: neither side by side with verification, nor more than needed.
            self.options = bases.options = replace(options, build_alone=True, thrift=Thrift.DEVICE)
            session.thrift = Thrift.DEVICE
            bases.gather()
            if not self.verified:
                del trial
                give_back()
                return
        bases.know(trial)
        self.trial = trial


def profile(
    options: Options,
    verify: Verify,
    monitor: Monitor,
    tell: Callable[[str], None] = lambda text: None,
    begun: float | None = None,
) -> dict[str, Any]:
    """The record of profiling `options.solution`. The caller holds the GPU's lock and runs `monitor`.

    verify: puts the question "same function?" first; what it finds is trusted. tell: progress, one line at a time.
    begun: when the command began (monotonic seconds), for the record.
    Raises CannotTell when the reference does not run or the processes cannot be had.
    """
    clock = Clock(begun)
    with ExitStack() as stack:
        tell("starting the solution and the baselines")
        session = TimedSession(
            options.solution, options.device, module=options.module, policy=options.policy, timeout=options.timeout
        )
        stack.callback(session.close)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="kernel-workbench-quiet-"))
        # What the solution may not touch is read before anything of it runs; here that is after its verification.
        untouched = Untouched(options.problem)
        options = replace(options, digests=untouched.digests)
        stack.callback(lambda: untouched.settle(session.process.layers, tell))
        bases = Baselines(options, stack, Path(folder) / "lock")
        may_import = threading.Event()
        stack.callback(may_import.set)
        ready = bases.pool.submit(session.ready, may_import.wait)
        # Processes take seconds to start, so all that are likely to be needed do at once, and the verification's too.
        bases.begin([AS_IT_COMES] if options.device == "cpu" else [AS_IT_COMES, "tf32"])
        ground = _Ground(options, derived_seeds(options.seed))

        def meanwhile(problem: Problem) -> None:
            clock.lap("start")
            ground.lay(problem, session, bases)
            clock.lap("trial")

        tell("verifying that the solution computes the same function")
        with bases.alone():
            verified = verify(options, meanwhile)
        ground.verified = True
        may_import.set()
        clock.lap("verification")
        if not verified.passed:
            return _ended(ground.options, FAIL, verified.reasons, session, verified, clock)
        if ground.trial is None:
            # Memory did not do for both at once.
            from utils.judge.shortage import give_back
            from utils.problem.problem import load_problem

            give_back()
            meanwhile(load_problem(options.problem))
        try:
            evidence, side, sides = _measured(ground, session, ready, bases, verified, monitor, clock, tell)
            if evidence.witness is not None and not evidence.witness.agrees:
                return _refused(ground.options, evidence, monitor, session, verified)
            tell("looking at where the time goes")
            _explain(evidence, side, sides, clock)
        except NotSame as failed:
            return _ended(ground.options, FAIL, [str(failed)], session, verified, clock)
        except rounds.SideFailed as failed:
            reasons = [f"the solution failed while it was timed: {failed}"]
            return _ended(ground.options, FAIL, reasons, session, verified, clock)
        except RunnerFailed as failed:
            if failed.kind == "harness":
                raise CannotTell(failed.sentence) from None
            return _ended(ground.options, FAIL, [failed.sentence], session, verified, clock)
        if options.ncu:
            from utils.timing import ncu

            tell("running Nsight Compute")
            assert ground.trial is not None
            evidence.ncu = ncu.collect(ground.options, ground.trial)
            clock.lap("ncu")
        return _finished(ground.options, evidence, monitor, session, verified)


def _measured(
    ground: _Ground,
    session: TimedSession,
    ready: Future[Any],
    bases: Baselines,
    verified: Verified,
    monitor: Monitor,
    clock: Clock,
    tell: Callable[[str], None],
) -> tuple[Evidence, SolutionSide, list[BaselineSide]]:
    """The rounds, once everything is built and nothing of ours computes any more; and whether the clocks agree."""
    import torch

    options, seeds, trial = ground.options, ground.seeds, ground.trial
    assert trial is not None
    trial.stateful = trial.stateful or verified.random
    ready.result()
    with bases.alone():
        stand = Stand(session, trial, seeds["inputs"])
    side = SolutionSide(stand, seeds["checks"], verified.tolerance, verified.tolerances)
    clock.lap("solution")
    tell("building the baselines")
    counted = bases.work()
    clock.lap("official baseline")
    precision = precision_for(verified.precision_class)
    if precision == "tf32" and not work.multiplies(counted):
        precision = AS_IT_COMES
    cuda, fp64 = torch.device(options.device).type == "cuda", _is_fp64(trial)
    rates = bases.rates(fp64, monitor) if cuda else None
    clock.lap("rates")
    sides = bases.finish(precision, tell)
    clock.lap("baselines")
    tell(f"timing {1 + len(sides)} variants in rounds")
    names = {side.name for side in sides}
    decisive = dict.fromkeys((Variant(OFFICIAL).key, Variant(OFFICIAL, precision).key))
    sampled = rounds.sample(
        side,
        sides,
        budget=options.budget,
        seed=seeds["order"],
        decisive=[name for name in decisive if name in names],
        throttled=monitor.throttled,
    )
    clock.lap("rounds")
    clock.laps["warm-up"] = sampled.warm_up
    clock.laps["rounds"] -= sampled.warm_up
    evidence = Evidence(
        sampled=sampled,
        variants=bases.wanted,
        built=bases.built,
        precision=precision,
        precision_class=verified.precision_class,
        target=options.target,
        work=counted,
        fp64=fp64,
        rates=rates,
        checked=side.checked,
        neighbours=monitor.neighbours(own=2 + len(bases.sessions)),
        witness=_witness(sampled, sides) if sides else None,
        seconds=clock.laps,
        processes=bases.marks,
    )
    return evidence, side, sides


def derived_seeds(seed: int) -> dict[str, int]:
    """Seeds for the parts of a run. The runner sees only that of the trial, from which the others cannot be told: which
    calls are compared must not be guessed."""
    names = ("trial", "inputs", "checks", "order")
    return {name: random.Random(f"{seed}/profiling/{name}").randrange(1 << 62) for name in names}


def _memory_short(trial: Trial, device: str, processes: int) -> bool:
    """Whether inputs, weights and outputs, some four times over in each process, and the verification beside them would
    crowd the device's memory."""
    import torch

    if torch.device(device).type != "cuda":
        return False
    inputs = sum(tensor.nbytes for tensor in walk(trial.first.args))
    outputs = sum(tensor.nbytes for tensor in trial.first.expected)
    weights = sum(tensor.nbytes for tensor in walk(trial.state))
    wanted = 4 * processes * (inputs + outputs + weights) + needed(Thrift.NONE, inputs, outputs)
    return wanted > torch.cuda.mem_get_info(torch.device(device))[0]


def _is_fp64(trial: Trial) -> bool:
    import torch

    floats = [tensor.dtype for tensor in [*walk(trial.state), *trial.first.expected] if tensor.is_floating_point()]
    return bool(floats) and all(dtype == torch.float64 for dtype in floats)


def _witness(sampled: rounds.Sampled, sides: Sequence[BaselineSide]) -> witness.Witness:
    """The solution's batches against the surroundings that the trusted baselines need for the same calls."""
    trusted = [batch for side in sides for batch in sampled.batches(side.name)]
    return witness.judge(sampled.batches(SOLUTION), witness.surroundings(trusted))


def _explain(evidence: Evidence, side: SolutionSide, sides: Sequence[BaselineSide], clock: Clock) -> None:
    """End-to-end times, kernels, graph times. Nothing here may change or lose the verdict.

    In this order: a profiler once attached slows every launch after it, and a capture that fails may leave its process
    unfit for more.
    """
    from utils.timing import statistics

    chosen: list[tuple[str, Stand, BaselineSide | None, float]] = []
    for name, stand, base in [(SOLUTION, side.stand, None), *((base.name, base.stand, base) for base in sides)]:
        summary = statistics.summary(evidence.sampled.samples(name))
        if summary is None or summary.median > _EXTRA_MS:
            continue
        if summary.median <= SMALL_MS or name in (SOLUTION, OFFICIAL):
            chosen.append((name, stand, base, summary.median))
    extras = {name: Extra() for name, *_ in chosen}

    def each(take: Callable[[Extra, Stand, float], None], field: str) -> None:
        for name, stand, base, median in chosen:
            try:
                if base is not None:
                    base.session.select(base.variant.mode)
                take(extras[name], stand, median)
            except RunnerFailed as failed:
                extras[name].why[field] = failed.sentence

    each(_end_to_end, "end_to_end")
    clock.lap("end to end")
    evidence.kernels = _kernels(side.stand, evidence.work)
    evidence.launches = _launches(evidence.kernels, sides)
    clock.lap("kernels")
    each(_replay, "graph")
    clock.lap("graphs")
    evidence.extras = extras


def _end_to_end(extra: Extra, stand: Stand, estimate_ms: float) -> None:
    extra.end_to_end = stand.session.end_to_end_ms(stand.inputs, estimate_ms)


def _replay(extra: Extra, stand: Stand, _: float) -> None:
    from utils.timing import statistics

    times, why = stand.session.replay(stand.inputs, 30)
    kept = statistics.clean(times).kept
    if kept:
        extra.graph = statistics.median(kept)
    else:
        extra.why["graph"] = why or "no usable time came back"


def _launches(ours: list[kernels.Kernel] | str, sides: Sequence[BaselineSide]) -> dict[str, int]:
    """Kernels of one call by side, as far as they could be recorded."""
    found = {} if isinstance(ours, str) else {SOLUTION: sum(row.calls for row in ours)}
    for side in sides:
        try:
            side.session.select(side.variant.mode)
            rows = _kernels(side.stand, None)
        except RunnerFailed:
            continue
        if not isinstance(rows, str):
            found[side.name] = sum(row.calls for row in rows)
    return found


def _kernels(stand: Stand, counted: work.Work | str | None) -> list[kernels.Kernel] | str:
    try:
        events, why = stand.session.kernels(stand.inputs)
    except RunnerFailed as failed:
        return failed.sentence
    rows = kernels.table(events)
    if not rows:
        return why or "no CUDA kernels were recorded"
    return kernels.attribute_bytes(rows, counted.bytes) if isinstance(counted, work.Work) else rows


def _finished(
    options: Options, evidence: Evidence, monitor: Monitor, session: TimedSession, verified: Verified
) -> dict[str, Any]:
    evidence.gpu = monitor.facts()
    built = result.build(evidence)
    built.results["verification"] = dict(verified.record)
    return envelope(
        "profiling",
        built.verdict,
        outcome.YES if built.met else outcome.NO,
        built.headline,
        settings=options.settings,
        environment=environment(options, session),
        results=built.results,
    )


def _refused(
    options: Options, evidence: Evidence, monitor: Monitor, session: TimedSession, verified: Verified
) -> dict[str, Any]:
    """The samples stay in the record, for whoever wants to know why; no verdict is drawn from them."""
    record = _finished(options, evidence, monitor, session, verified)
    assert evidence.witness is not None
    reasons = [f"the result is refused: {evidence.witness.sentence}"]
    record["results"]["headline"] = reasons
    record["results"]["target"]["state"] = "refused"
    for row in record["results"]["baselines"]:
        row.update(verdict=REFUSED, target="refused")
    return {**record, "verdict": REFUSED, "exit_code": outcome.NO, "reasons": reasons}


def _ended(
    options: Options, verdict: str, reasons: Sequence[str], session: TimedSession, verified: Verified, clock: Clock
) -> dict[str, Any]:
    return envelope(
        "profiling",
        verdict,
        outcome.NO,
        reasons,
        settings=options.settings,
        environment=environment(options, session),
        results={"verification": verified.record, "seconds": clock.laps},
    )


def environment(options: Options, session: TimedSession) -> dict[str, Any]:
    """Versions and digests: what ran, against what, under which harness."""
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "host": platform.platform(),
        "device": options.device,
        "sandbox": getattr(getattr(session.process, "layers", None), "had", []),
        "digests": {**options.digests, **session.stage.digests},
    }
