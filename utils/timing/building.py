"""The baseline processes of one profiling: started first, and building in threads of the judge while it verifies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from utils.judge.failure import RunnerFailed
from utils.present.outcome import CannotTell
from utils.timing import limits
from utils.timing.baselines import BaselineSession, Built, told
from utils.timing.quiet import Quiet
from utils.timing.sides import BaselineSide, NotSame, Stand, Trial
from utils.timing.variants import AS_IT_COMES, OFFICIAL, Variant, process_of, variants
from utils.timing.work import Work, multiplies, walk

if TYPE_CHECKING:
    from utils.timing.gpu import Monitor
    from utils.timing.run import Options

_THREADS = 16


class Baselines:
    """Processes by name (utils.timing.variants.process_of), and what became of each variant. Where memory is short, the
    process of the official mode builds all modes of its precision (`gather`).

    quiet: the lock that keeps the GPU to the judge, or to one timing of one compiler; the judge holds it whenever it
    works on the GPU while baselines may be building (`alone`).
    """

    def __init__(self, options: Options, stack: ExitStack, quiet: Path) -> None:
        self.options, self._stack = options, stack
        self.sessions: dict[str, BaselineSession] = {}
        self.stands: dict[str, Stand] = {}
        self.built: dict[str, Built] = {}
        self.wanted: list[Variant] = []
        self._name = process_of
        self._begun: dict[str, Future[None]] = {}
        self._trial: Future[Trial] = Future()
        self._work: Future[Work | str] = Future()
        # Seconds after the start at which each process was ready, and had built what it builds by itself.
        self.marks: dict[str, dict[str, float]] = {}
        self._start = time.monotonic()
        self._place, self._quiet = quiet, Quiet(quiet)
        stack.callback(self._quiet.close)
        self.pool = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="baseline")
        stack.callback(self.pool.shutdown, wait=True, cancel_futures=True)
        # Whoever waits for a trial that never comes must not wait for ever.
        stack.callback(self._trial.cancel)
        stack.callback(self._work.cancel)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The GPU without a compiler that takes times on it. For the judge's main thread."""
        with self._quiet.hold():
            yield

    def begin(self, precisions: Sequence[str]) -> None:
        """Starts the processes of these precisions, which get ready and build what `options` asks for."""
        for precision in precisions:
            plain = [Variant(mode, precision) for mode in self.options.modes]
            for name in dict.fromkeys(self._name(variant) for variant in plain):
                session = BaselineSession(
                    self.options.problem,
                    self.options.device,
                    precision,
                    timeout=self.options.timeout,
                    build_timeout=self.options.build_timeout,
                    quiet=self._place,
                )
                self._stack.callback(session.close)
                self.sessions[name] = session
                mine = [variant for variant in plain if self._name(variant) == name]
                self._begun[name] = self.pool.submit(self._begin, name, mine)

    def know(self, trial: Trial) -> None:
        """Hands over the trial, for which the processes begun may be waiting."""
        self._trial.set_result(trial)

    def drop(self, precision: str) -> None:
        """Ends the processes of a precision that is not needed after all."""
        for name in [name for name, session in self.sessions.items() if session.precision == precision]:
            self._end(name)

    def gather(self) -> None:
        """Leaves one process per precision, as each holds inputs, weights and outputs of its own. Before `know`."""
        self._name = _of_precision
        for name in [
            name for name, session in self.sessions.items() if name != Variant(OFFICIAL, session.precision).key
        ]:
            self._end(name)

    def finish(self, precision: str, tell: Callable[[str], None]) -> list[BaselineSide]:
        """Everything that `precision` wants, built; the sides that can be timed. Failures are in `built`.

        Afterwards no process of a baseline computes anything until it is asked to.
        """
        self.wanted = variants(self.options.modes, precision)
        needed = {variant.precision for variant in self.wanted}
        present = {session.precision for session in self.sessions.values()}
        for name in present - needed:
            self.drop(name)
        self.begin(sorted(needed - present))
        sides = []
        for variant in self.wanted:
            built = self._finished(variant, tell)
            self.built[variant.key] = built
            if built.error is None:
                name = self._name(variant)
                side = BaselineSide(self._stand(name), self.sessions[name], variant)
                with self.alone():
                    built.difference = _difference(side)
                sides.append(side)
        return [side for side in sides if side.session.alive]

    def work(self) -> Work | str:
        """The work of the reference, counted by the process of the official mode; a sentence where it cannot be."""
        try:
            self._begun[OFFICIAL].result()
            if not self._work.done():
                self._work.set_result(self.sessions[OFFICIAL].work(self._stand(OFFICIAL).inputs))
        except (RunnerFailed, CannotTell) as failed:
            return f"the work could not be counted: {told(failed) if isinstance(failed, RunnerFailed) else failed}"
        return self._work.result()

    def rates(self, fp64: bool, monitor: Monitor) -> limits.Rates | None:
        """The device's measured rates, from the cache where this device, driver and torch were measured before."""
        session = self.sessions[OFFICIAL]
        try:
            # Not asked while it builds and may be waiting for its turn.
            self._begun[OFFICIAL].result()
        except (RunnerFailed, CannotTell):
            return None
        card = monitor.card
        key = {
            "device": card.uuid if card else str(session.facts.get("device_name", "")),
            "driver": card.driver if card else "",
            "torch": str(session.facts.get("torch", "")),
            "fp64": str(fp64),
        }
        wanted = [name for name in limits.PRECISIONS if name != "fp64" or fp64]
        try:
            with self.alone():
                return limits.cached(key, lambda: limits.Rates(**session.rates(wanted)))[0]
        except (RunnerFailed, TypeError):
            return None

    def _finished(self, variant: Variant, tell: Callable[[str], None]) -> Built:
        """How `variant` came to be, waited for or built now."""
        name = self._name(variant)
        session, begun = self.sessions[name], self._begun[name]
        if not begun.done():
            tell(f"building {variant.label}")
        try:
            begun.result()
        except (RunnerFailed, CannotTell) as failed:
            sentence = told(failed) if isinstance(failed, RunnerFailed) else str(failed)
            if name == OFFICIAL:
                raise CannotTell(f"the reference could not be set up in its own process: {sentence}") from None
            return Built(variant, error=sentence)
        built = session.built.get(variant.mode)
        if built is None and session.alive:
            tell(f"building {variant.label}")
            built = session.prepare(variant, self._stand(name).inputs)
        return built or Built(variant, error="its process ended")

    def _get_ready(self, name: str, mine: Sequence[Variant]) -> None:
        session = self.sessions[name]
        marks = self.marks[name] = {}
        session.ready()
        marks["ready"] = time.monotonic() - self._start
        trial = self._trial.result()
        if self.options.build_alone:
            return
        marks["trial"] = time.monotonic() - self._start
        if name == OFFICIAL:
            self._work.set_result(session.work(self._stand(name).inputs))
        if session.precision != AS_IT_COMES and not _single_products(trial, self._work.result()):
            return  # not needed as it seems; whoever wants it yet finds it ready to build
        # What is built first is there even when the next fails.
        for variant in sorted(mine, key=lambda variant: variant.mode != "eager"):
            if session.alive:
                session.prepare(variant, self._stand(name).inputs)
        marks["built"] = time.monotonic() - self._start

    def _begin(self, name: str, mine: Sequence[Variant]) -> None:
        try:
            self._get_ready(name, mine)
        except BaseException:
            # Others wait for what only this one can tell.
            if name == OFFICIAL and not self._work.done():
                self._work.set_result("the work could not be counted: the baseline's process failed")
            raise

    def _end(self, name: str) -> None:
        # Its thread fails, and nobody asks what became of it.
        self._begun.pop(name)
        self.stands.pop(name, None)
        self.sessions.pop(name).close()

    def _stand(self, name: str) -> Stand:
        """The session with the trial's weights and inputs in place."""
        if name not in self.stands:
            session = self.sessions[name]
            session.thrift = self.options.thrift
            self.stands[name] = Stand(session, self._trial.result(), self.options.seed)
        return self.stands[name]


def _of_precision(variant: Variant) -> str:
    return Variant(OFFICIAL, variant.precision).key


def _single_products(trial: Trial, counted: Work | str) -> bool:
    """Whether the reference multiplies matrices or convolves in fp32, so that a solution may be of TF32's class."""
    import torch

    tensors = [*walk(trial.state), *walk(trial.first.args)]
    return any(tensor.dtype == torch.float32 for tensor in tensors) and multiplies(counted)


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
