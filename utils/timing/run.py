"""One profiling from start to end: processes side by side, verification first, then rounds, then what explains them.

verify        does the solution compute the same function? Nothing is timed as a success before that
baselines     built meanwhile, one process per precision
rounds        solution and baselines in turns, until the evidence suffices
witness       the judge's wall clock against the reported times
explanation   end-to-end and graph times, speed of light, kernels, Nsight Compute
"""

from __future__ import annotations

import platform
import random
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.judge.failure import RunnerFailed
from utils.judge.sandbox import Policy
from utils.present import outcome
from utils.present.outcome import CannotTell
from utils.present.record import envelope
from utils.problem.solution import Solution
from utils.timing import kernels, limits, result, rounds, witness, work
from utils.timing.baselines import BaselineSession, Built, told
from utils.timing.gpu import Monitor
from utils.timing.result import SMALL_MS, SOLUTION, Evidence, Extra
from utils.timing.sessions import TimedSession
from utils.timing.sides import BaselineSide, NotSame, SolutionSide, Stand, Trial
from utils.timing.variants import AS_IT_COMES, OFFICIAL, Variant, precision_for, variants
from utils.timing.work import walk

if TYPE_CHECKING:
    from utils.judge.comparing import Tolerance

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
    # Keep fewer copies of the inputs on the device; see utils.judge.session.Session.
    frugal: bool = False
    module: Path | None = None
    policy: Policy = field(default_factory=Policy)
    settings: Mapping[str, Any] = field(default_factory=dict)


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


Verify = Callable[[Options], Verified]


def profile(
    options: Options, verify: Verify, monitor: Monitor, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """The record of profiling `options.solution`. The caller holds the GPU's lock and runs `monitor`.

    verify: puts the question "same function?" first; what it finds is trusted. tell: progress, one line at a time.
    Raises CannotTell when the reference does not run or the processes cannot be had.
    """
    with ExitStack() as stack:
        tell("starting the solution and the baselines")
        session = TimedSession(
            options.solution, options.device, module=options.module, policy=options.policy, timeout=options.timeout
        )
        stack.callback(session.close)
        bases = _Baselines(options, stack)
        # What the solution may not touch is read before anything of it runs.
        loaded = threading.Event()
        stack.callback(loaded.set)
        ready = bases.pool.submit(session.ready, loaded.wait)
        # Processes take seconds to start, so both that are likely to be needed do at once.
        bases.begin([AS_IT_COMES] if options.device == "cpu" else [AS_IT_COMES, "tf32"])
        # Only now: importing takes seconds, in which the processes start.
        import torch

        from utils.problem.problem import load_problem

        problem = load_problem(options.problem)
        loaded.set()
        seeds = derived_seeds(options.seed)
        trial = Trial(problem, torch.device(options.device), seeds["trial"], train=options.train, small=options.small)
        counted = work.count(trial.reference.model, trial.first.args)
        short = _memory_short(trial, options.device)
        if short:
            # Every session keeps copies of its own: neither side by side with verification, nor more than needed.
            options = replace(options, build_alone=True, frugal=True)
            bases.options, session.frugal = options, True
        if not _single_products(trial, counted):
            bases.drop("tf32")
        bases.know(trial)
        tell("verifying that the solution computes the same function")
        verified = verify(options)
        if not verified.passed:
            return _ended(options, FAIL, verified.reasons, session, {"verification": verified.record})
        trial.stateful = trial.stateful or verified.random
        try:
            ready.result()
            stand = Stand(session, trial, seeds["inputs"])
            side = SolutionSide(stand, seeds["checks"], verified.tolerance, verified.tolerances)
            precision = precision_for(verified.precision_class)
            if precision == "tf32" and not _multiplies(counted):
                precision = AS_IT_COMES
            tell("building the baselines")
            sides = bases.finish(precision, tell)
            evidence = Evidence(
                sampled=rounds.Sampled({}, {}),
                variants=bases.wanted,
                built=bases.built,
                precision=precision,
                precision_class=verified.precision_class,
                target=options.target,
                work=counted,
                fp64=_is_fp64(trial),
            )
            if torch.device(options.device).type == "cuda":
                evidence.rates = bases.rates(evidence.fp64, monitor)
            tell(f"timing {1 + len(sides)} variants in rounds")
            equal = [
                name
                for name in (Variant(OFFICIAL).key, Variant(OFFICIAL, precision).key)
                if name in {s.name for s in sides}
            ]
            evidence.sampled = rounds.sample(
                side, sides, budget=options.budget, seed=seeds["order"], decisive=equal, throttled=monitor.throttled
            )
            evidence.checked = side.checked
            evidence.neighbours = monitor.neighbours(own=2 + len(bases.sessions))
            evidence.witness = _witness(evidence.sampled, sides) if sides else None
            if evidence.witness is not None and not evidence.witness.agrees:
                return _refused(options, evidence, monitor, session, verified)
            tell("looking at where the time goes")
            _explain(evidence, side, sides)
        except NotSame as failed:
            return _ended(options, FAIL, [str(failed)], session, {"verification": verified.record})
        except rounds.SideFailed as failed:
            return _ended(
                options,
                FAIL,
                [f"the solution failed while it was timed: {failed}"],
                session,
                {"verification": verified.record},
            )
        except RunnerFailed as failed:
            if failed.kind == "harness":
                raise CannotTell(failed.sentence) from None
            return _ended(options, FAIL, [failed.sentence], session, {"verification": verified.record})
        if options.ncu:
            from utils.timing import ncu

            tell("running Nsight Compute")
            evidence.ncu = ncu.collect(options, trial)
        return _finished(options, evidence, monitor, session, verified)


def derived_seeds(seed: int) -> dict[str, int]:
    """Seeds for the parts of a run. The runner sees only that of the trial, from which the others cannot be told: which
    calls are compared must not be guessed."""
    names = ("trial", "inputs", "checks", "order")
    return {name: random.Random(f"{seed}/profiling/{name}").randrange(1 << 62) for name in names}


class _Baselines:
    """The baseline processes, by precision, working in threads of their own while the judge verifies."""

    def __init__(self, options: Options, stack: ExitStack) -> None:
        self.options, self._stack = options, stack
        self.sessions: dict[str, BaselineSession] = {}
        self.stands: dict[str, Stand] = {}
        self.built: dict[str, Built] = {}
        self.wanted: list[Variant] = []
        self.pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="baseline")
        stack.callback(self.pool.shutdown, wait=True, cancel_futures=True)
        self._begun: dict[str, Future[None]] = {}
        self._trial: Future[Trial] = Future()
        # Whoever waits for a trial that never comes must not wait for ever.
        stack.callback(self._trial.cancel)

    def know(self, trial: Trial) -> None:
        """Hands over the trial, for which the processes begun may be waiting."""
        self._trial.set_result(trial)

    def drop(self, precision: str) -> None:
        """Ends the process of a precision that is not needed after all."""
        self._begun.pop(precision, None)
        session = self.sessions.pop(precision, None)
        if session is not None:
            session.close()

    def begin(self, precisions: Sequence[str]) -> None:
        """Starts a process per precision, which gets ready and builds what every run needs: eager and torch.compile."""
        for precision in precisions:
            session = BaselineSession(
                self.options.problem,
                self.options.device,
                precision,
                timeout=self.options.timeout,
                build_timeout=self.options.build_timeout,
            )
            self._stack.callback(session.close)
            self.sessions[precision] = session
            self._begun[precision] = self.pool.submit(self._get_ready, session)

    def finish(self, precision: str, tell: Callable[[str], None]) -> list[BaselineSide]:
        """Everything that `precision` wants, built; the sides that can be timed. Failures are in `built`."""
        self.wanted = variants(self.options.modes, precision)
        needed = {variant.precision for variant in self.wanted}
        for name in set(self.sessions) - needed:
            self.drop(name)
        self.begin(sorted(needed - set(self.sessions)))
        for name, future in self._begun.items():
            try:
                future.result()
            except (RunnerFailed, CannotTell) as failed:
                sentence = told(failed) if isinstance(failed, RunnerFailed) else str(failed)
                if name == AS_IT_COMES:
                    raise CannotTell(f"the reference could not be set up in its own process: {sentence}") from None
                for variant in self.wanted:
                    if variant.precision == name:
                        self.built[variant.key] = Built(variant, error=sentence)
        sides = []
        for variant in self.wanted:
            if variant.key in self.built:
                continue
            session = self.sessions[variant.precision]
            built = session.built.get(variant.mode)
            if built is None and session.alive:
                tell(f"building {variant.label}")
                built = session.prepare(variant, self._stand(session).inputs)
            built = built or Built(variant, error="its process ended")
            self.built[variant.key] = built
            if built.error is None:
                side = BaselineSide(self._stand(session), session, variant)
                built.difference = _difference(side)
                sides.append(side)
        return [side for side in sides if self.sessions[side.variant.precision].alive]

    def rates(self, fp64: bool, monitor: Monitor) -> limits.Rates | None:
        """The device's measured rates, from the cache where this device, driver and torch were measured before."""
        session = self.sessions[AS_IT_COMES]
        card = monitor.card
        key = {
            "device": card.uuid if card else str(session.facts.get("device_name", "")),
            "driver": card.driver if card else "",
            "torch": str(session.facts.get("torch", "")),
            "fp64": str(fp64),
        }
        wanted = [name for name in limits.PRECISIONS if name != "fp64" or fp64]
        try:
            return limits.cached(key, lambda: limits.Rates(**session.rates(wanted)))[0]
        except (RunnerFailed, TypeError):
            return None

    def _get_ready(self, session: BaselineSession) -> None:
        session.ready()
        self._trial.result()
        if self.options.build_alone:
            return
        for mode in ("eager", OFFICIAL):
            if mode in self.options.modes and session.alive:
                session.prepare(Variant(mode, session.precision), self._stand(session).inputs)

    def _stand(self, session: BaselineSession) -> Stand:
        """The session with the trial's weights and inputs in place."""
        if session.precision not in self.stands:
            session.frugal = self.options.frugal
            self.stands[session.precision] = Stand(session, self._trial.result(), self.options.seed)
        return self.stands[session.precision]


def _difference(side: BaselineSide) -> float | None:
    """How far a baseline's result lies from the reference's; None where it cannot be compared."""
    from utils.judge.comparing import Tolerance

    try:
        side.session.select(side.variant.mode)
        found = side.stand.compared(side.stand.call(), {}, Tolerance(0.0, 0.0))
    except (RunnerFailed, NotSame):
        return None
    errors = [leaf.comparison.relative_rms for leaf in found.leaves if leaf.comparison is not None]
    return max(errors, default=None) if not found.structure else None


def _multiplies(counted: work.Work | str) -> bool:
    """Whether the reference has matrix products or convolutions, to which TF32 applies; yes where it is not known."""
    return isinstance(counted, str) or counted.matrix_flop > 0


def _single_products(trial: Trial, counted: work.Work | str) -> bool:
    """Whether the reference multiplies matrices or convolves in fp32, so that a solution may be of TF32's class."""
    import torch

    tensors = [*walk(trial.state), *walk(trial.first.args)]
    return any(tensor.dtype == torch.float32 for tensor in tensors) and _multiplies(counted)


def _memory_short(trial: Trial, device: str) -> bool:
    """Whether inputs, weights and outputs, some twenty times over in all processes, would crowd the device's memory."""
    import torch

    if torch.device(device).type != "cuda":
        return False
    draw = trial.first
    bytes_once = sum(tensor.nbytes for tensor in [*walk(draw.args), *draw.expected, *walk(trial.state)])
    return 20 * bytes_once > torch.cuda.mem_get_info(torch.device(device))[0]


def _is_fp64(trial: Trial) -> bool:
    import torch

    floats = [tensor.dtype for tensor in [*walk(trial.state), *trial.first.expected] if tensor.is_floating_point()]
    return bool(floats) and all(dtype == torch.float64 for dtype in floats)


def _witness(sampled: rounds.Sampled, sides: Sequence[BaselineSide]) -> witness.Witness:
    """The solution's batches against the surroundings that the trusted baselines need for the same calls."""
    trusted = [batch for side in sides for batch in sampled.batches(side.name)]
    return witness.judge(sampled.batches(SOLUTION), witness.surroundings(trusted))


def _explain(evidence: Evidence, side: SolutionSide, sides: Sequence[BaselineSide]) -> None:
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
    evidence.kernels = _kernels(side.stand, evidence.work)
    each(_replay, "graph")
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
    options: Options, verdict: str, reasons: Sequence[str], session: TimedSession, results: Mapping[str, Any]
) -> dict[str, Any]:
    return envelope(
        "profiling",
        verdict,
        outcome.NO,
        reasons,
        settings=options.settings,
        environment=environment(options, session),
        results=results,
    )


def environment(options: Options, session: TimedSession) -> dict[str, Any]:
    """Versions and digests: what ran, against what, under which harness."""
    import torch

    from utils.judge.staging import digest, harness_digest

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "host": platform.platform(),
        "device": options.device,
        "sandbox": getattr(getattr(session.process, "layers", None), "had", []),
        "digests": {"harness": harness_digest(), "problem": digest(options.problem), **session.stage.digests},
    }
