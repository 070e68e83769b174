"""The trials: the sequence of calls a solution must get right.

Each trial draws new weights and new inputs and calls forward three times on both sides:

    call 1   x              expected: the answer to x; the result is held
    call 2   y, in place    same addresses as x, new values; then the held result of call 1 is read once more
    call 3   x, moved       new addresses, same values; must agree with call 1, bit for bit or nearly

y is another draw, or the x of the trial before (same values, new weights), or x with a part of it from that x. In most
trials the weights are loaded in place into the same module; the first and the last construct it anew. One call of each
trial, chosen at random, records the dispatched operators. One, chosen at random too, is asked for just as timed calls
are; the others get their inputs late. The seeds of its calls tell nothing of one another, unless Model itself draws
random numbers, and must draw the same ones for x moved.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from utils.judge import causes, structure
from utils.judge import reference as references
from utils.judge.causes import Wrong
from utils.judge.clock import Clock
from utils.judge.comparing import Compared, Tolerance, compare_result
from utils.judge.distribution import same_distribution
from utils.judge.draws import partly, trial_seeds
from utils.judge.failure import RunnerFailed
from utils.judge.handles import Inputs, Outputs
from utils.judge.reference import Reference
from utils.judge.session import TIMED_DELAY_US, Called, Session
from utils.judge.thrift import Thrift
from utils.judge.verdict import Findings
from utils.native.compare import compare
from utils.problem.problem import Problem

# Long enough for Python to get through a forward of hundreds of launches while the inputs are still on their way.
_DELAYS_US = (300.0, 2000.0, 10000.0)
_OLD_X = "the x of the trial before"


@dataclass(frozen=True)
class Settings:
    """What a verification was asked for. Tolerances are those of the command line; `small` takes the small variant."""

    trials: int = 5
    atol: float = 1e-2
    rtol: float = 1e-2
    seed: int = 0
    train: bool = False
    small: bool = False


@dataclass
class CallRecord:
    """One call and what came of it."""

    trial: int
    call: int
    label: str
    compared: Compared | None = None
    device_ms: float | None = None
    wall_ms: float | None = None
    launch_error: str = ""
    changed: list[str] = field(default_factory=list)
    distribution: str = ""  # set where random numbers are compared as samples, not one by one

    @property
    def passed(self) -> bool:
        return self.compared is not None and not self.launch_error and (self.compared.passed or bool(self.distribution))


@dataclass
class TrialRecord:
    """One trial: the seeds that repeat it, how the weights came about, and its calls."""

    number: int
    seeds: dict[str, int]
    weights: str
    constructed: bool
    calls: list[CallRecord] = field(default_factory=list)
    repeatable: str = ""
    state_differs: list[str] = field(default_factory=list)
    first: list[torch.Tensor] | None = None  # the reference's answer of call 1, while the trial runs


class Trials:
    """Runs the trials of one session against a reference, adding to `findings` what it sees.

    tolerances: by path of an output, where the default of the settings does not hold. draws: inputs that were drawn
    already, by their seeds; each is used once. After `run`, `ops` holds the
    operators recorded, `records` the trials, and `first` the first call's expected and actual tensors.
    """

    def __init__(
        self,
        session: Session,
        problem: Problem,
        settings: Settings,
        tolerances: Mapping[str, Tolerance],
        findings: Findings,
        *,
        perturb: bool = True,
        random_: bool = False,
        on_first: Callable[[list[torch.Tensor]], None] | None = None,
        progress: Callable[[str], None] = lambda text: None,
        draws: Mapping[int, list[Any]] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._draws, self._clock = dict(draws or {}), clock or Clock()
        self.session, self._problem, self._settings = session, problem, settings
        self.tolerances, self.default = tolerances, Tolerance(settings.atol, settings.rtol)
        self.findings = findings
        self._random_forward = random_
        self._perturb, self._on_first, self._progress = perturb, on_first, progress
        self._random = random.Random(settings.seed)
        self.records: list[TrialRecord] = []
        self.ops: dict[tuple[str, str], dict[str, Any]] = {}
        self.flags: dict[str, str] = {}
        self.reference: Reference | None = None
        self.outputs: Outputs | None = None
        # The call of this trial that is asked for as timed ones are.
        self._as_timed = 1
        self.last_inputs: list[Any] = []
        # The solution draws other random numbers than Model, from the same distribution.
        self.random_differs = False
        # The weights before the last reload, to recognise answers that were made with them.
        self._old_state: dict[str, Any] | None = None
        self._before: tuple[list[Any], list[torch.Tensor]] | None = None

    def run(self) -> None:
        """All trials. Raises RunnerFailed when the runner is lost, CannotTell when Model itself fails."""
        total = self._settings.trials
        for number in range(1, total + 1):
            self._progress(f"trial {number} of {total}")
            try:
                self._trial(number, anew=number in (1, total))
            except RunnerFailed as failed:
                failed.details.setdefault("trial", number)
                raise

    @property
    def train(self) -> bool:
        return self._settings.train

    def another_seed(self) -> int:
        """A seed for a call beyond the trials, which nothing that the runner saw tells of."""
        return self._random.randrange(1 << 62)

    # ---- one trial -------------------------------------------------------------------------------------------------

    def _trial(self, number: int, anew: bool) -> None:
        seeds = trial_seeds(self._settings.seed, number)
        if anew or self.reference is None:
            with self._clock.part("draw weights"):
                self.reference = Reference(
                    self._problem,
                    self.session.device,
                    seed=seeds["construct"],
                    train=self._settings.train,
                    small=self._settings.small,
                )
            done = self.session.construct(
                self.reference.init_arguments, seed=seeds["construct"], train=self._settings.train
            )
            self._note_ops(done["ops"])
        reference = self.reference
        self._old_state = None if anew else reference.kept_state()
        how = "none"
        if reference.state():
            with self._clock.part("draw weights"):
                how = reference.redraw(seeds["weights"], perturb=self._perturb and number > 1)
        self._load(reference)
        record = TrialRecord(number, seeds, how, anew)
        self.records.append(record)

        with self._clock.part("draw inputs"):
            x = self._drawn(seeds["x"])
            y, label = self._second(x, seeds["y"])
        recorded, self._as_timed = self._random.randint(1, 3), self._random.randint(1, 3)
        with self._clock.part("place inputs"):
            inputs = self.session.put(x)
        try:
            frugal, on_host = bool(self.session.thrift), self.session.thrift is Thrift.HOST
            first, expected = self._call(
                record, 1, "x", inputs, seeds["call"], recorded == 1, hold=None if frugal else number
            )
            assert self.outputs is not None
            first_tree = self.outputs.expected
            before_second = [tensor.cpu() if on_host else tensor.clone() for tensor in expected]
            record.first = before_second
            given = None if frugal else self._kept(first)
            if number == 1 and self._on_first is not None and self.outputs is not None and given is not None:
                self._on_first(given)
            # A view of the input changes with it.
            inputs.poison_live()
            inputs = self._rewritten(inputs, y)
            expected = [] if frugal else expected
            self._call(record, 2, label, inputs, seeds["second_call"], recorded == 2)
            if not frugal:
                self._survived(record, number, expected, before_second, first_tree)
            inputs = self._rewritten(inputs, x)
            if not frugal:
                with self._clock.part("place inputs"):
                    inputs.move()
            seed = seeds["call" if self._random_forward else "third_call"]
            third, again = self._call(record, 3, "x again" if frugal else "x moved", inputs, seed, recorded == 3)
            self._repeatable(record, first, third, before_second, again, given)
            late = self.session.settle()
            if late:
                self.findings.fail("launch", f"a kernel launch failed and was not checked: {late}", trial=number)
            self._compare_state(record, reference)
            self._before = (x, before_second)
        finally:
            if self.session.alive:
                inputs.release()
                self.session.drop(held=[number])
            record.first = None
        self.last_inputs = x

    def _call(
        self,
        record: TrialRecord,
        call: int,
        label: str,
        inputs: Inputs,
        seed: int,
        recorded: bool,
        hold: int | None = None,
    ) -> tuple[CallRecord, list[torch.Tensor]]:
        """One call on both sides, compared; the record and the reference's tensors."""
        assert self.reference is not None
        args, kwargs = inputs.values()
        with self._clock.part("reference"), references.full_precision():
            value = self.reference.run(args, kwargs, seed=seed)
        expected = references.tensors(value)
        tree = references.describe(value)
        if self.outputs is None or structure.bare(self.outputs.expected) != structure.bare(tree):
            if self.outputs is not None:
                self.outputs.release()
            self.outputs = self.session.expect(tree)
        self.outputs.expected = tree
        made = CallRecord(record.number, call, label)
        record.calls.append(made)
        at = {"trial": record.number, "call": call}
        late = call != self._as_timed
        try:
            called = self.session.call(
                inputs,
                self.outputs,
                seed=seed,
                record=recorded,
                hold=hold,
                delay_us=self._random.choice(_DELAYS_US) if late else TIMED_DELAY_US,
                late=late,
                flush=self.session.device.type == "cuda",
            )
        except RunnerFailed as failed:
            failed.details.update(at)
            raise
        self.flags = called.flags
        self._note_ops(called.ops)
        made.device_ms, made.wall_ms, made.launch_error = called.device_ms[-1], called.wall_s * 1e3, called.launch_error
        with self._clock.part("compare"):
            made.compared = compare_result(expected, self.outputs, called, self.tolerances, self.default)
        if called.launch_error:
            self.findings.fail(
                "launch", f"a kernel launch failed and ModelNew did not check it: {called.launch_error}", **at
            )
        if not made.compared.passed and not self._excused(made, inputs, at):
            self._say_why(made, expected, inputs, at)
        with self._clock.part("compare"):
            self._side_effects(made, inputs, called, expected, args, at)
        return made, expected

    def _excused(self, made: CallRecord, inputs: Inputs, at: dict[str, Any]) -> bool:
        """Whether other numbers than Model's are right because both draw random ones from the same distribution."""
        assert made.compared is not None and self.outputs is not None and self.reference is not None
        if not self._random_forward or made.compared.structure:
            return False
        seed = (self.records[-1].seeds["y"] >> 8) + 1000 * made.call
        agreement = same_distribution(self.session, self.reference, inputs, self.outputs, seed=seed)
        self.findings.add("note" if agreement.holds else "fail", "random", agreement.sentence, **at)
        if agreement.holds:
            self.random_differs = True
            made.distribution = "same distribution"
        return agreement.holds

    def _say_why(self, made: CallRecord, expected: list[torch.Tensor], inputs: Inputs, at: dict[str, Any]) -> None:
        """The failed comparison as findings, with the cause where one can be recognised."""
        assert made.compared is not None and self.outputs is not None
        for sentence in made.compared.structure:
            self.findings.fail("structure", sentence, **at)
        for leaf in made.compared.leaves:
            if leaf.passed:
                continue
            kind = "values"
            if leaf.comparison is not None and leaf.comparison.unwritten == leaf.comparison.count:
                kind = "unwritten"
            self.findings.fail(kind, leaf.sentence, **at)
        if made.compared.structure:
            return
        cause = self._cause(made, Wrong(self.outputs.tensors(), expected, made.compared.leaves), inputs)
        if cause is not None:
            self.findings.fail(cause[0], cause[1], **at)

    def _cause(self, made: CallRecord, wrong: Wrong, inputs: Inputs) -> tuple[str, str] | None:
        """What kind of mistake gives just this answer, as (kind, sentence); None when none is recognised."""
        record = self.records[-1]
        if made.label == _OLD_X and self._before is not None and wrong.is_rather(self._before[1]):
            return causes.OLD_INPUT
        if made.call == 2 and wrong.is_rather(record.first):
            return causes.OLD_VALUES
        reloaded = made.call == 1 and record.number > 1 and not record.constructed
        if reloaded and wrong.is_rather(self._with_old_weights(inputs)):
            return causes.OLD_WEIGHTS
        shown = wrong.from_values()
        if shown is not None:
            return shown
        if reloaded and all(call.passed for trial in self.records[:-1] for call in trial.calls):
            return causes.ONLY_AFTER_RELOAD
        strided = [name for name, tensor in inputs.tensors if not tensor.is_contiguous()]
        return ("hint", f"note that {', '.join(strided)} is not contiguous") if strided else None

    def _with_old_weights(self, inputs: Inputs) -> list[torch.Tensor] | None:
        """The reference's answer with the weights of the trial before, where they were kept."""
        if self._old_state is None or self.reference is None:
            return None
        args, kwargs = inputs.values()
        with references.full_precision(), self.reference.as_with(self._old_state):
            return references.tensors(self.reference.run(args, kwargs, seed=self.records[-1].seeds["call"]))

    def _side_effects(
        self,
        made: CallRecord,
        inputs: Inputs,
        called: Called,
        expected: list[torch.Tensor],
        args: list[Any],
        at: dict[str, Any],
    ) -> None:
        """Inputs changed, results that are views of inputs, bytes written beside the slots."""
        assert self.outputs is not None
        shared = _aliases(expected, inputs.reference_memory())
        by_reference = set(inputs.reference_changed())
        by_solution = set(inputs.changed())
        made.changed = sorted(by_solution)
        for name in sorted(by_solution - by_reference):
            self.findings.fail("mutated_input", f"ModelNew changed {name}; Model leaves it as it was", **at)
        for name in sorted(by_reference - by_solution):
            # Where the change is all that Model does, not to make it is to do nothing.
            level = "warn" if expected else "fail"
            sentence = f"Model changes {name} in place and ModelNew does not: a caller that relies on it would notice"
            self.findings.add(level, "mutated_input", sentence, **at)
        if by_reference & by_solution and not self.random_differs:
            for sentence in inputs.changed_otherwise(self.default):
                self.findings.fail("mutated_input", sentence, **at)
        aliased = dict(zip(self.outputs.paths, shared, strict=True))
        for path, node in structure.tensors(called.out):
            if node.get("alias") and not aliased.get(path):
                self.findings.fail(
                    "aliased_output",
                    f"{path} shares memory with {node['alias']}; Model returns memory of its own",
                    **at,
                )
        for name in inputs.overrun():
            self.findings.fail("overrun", f"ModelNew wrote outside the bounds of {name}", **at)
        if self.outputs.overrun():
            self.findings.fail("overrun", "something was written beside the memory of the outputs", **at)

    # ---- parts -----------------------------------------------------------------------------------------------------

    def _load(self, reference: Reference) -> None:
        done = self.session.load(reference.state())
        self._note_ops(done["ops"])
        for name, how in done["differs"].items():
            if how.startswith("is held as"):
                self.findings.note("weights", f"{name} {how} in ModelNew")
            else:
                self.findings.fail(
                    "weights", f"after load_state_dict, {name} {how}: ModelNew does not take the weights it is given"
                )

    def _drawn(self, seed: int) -> list[Any]:
        """The inputs that `seed` gives, brought to the device once; short of memory they wait on the host."""
        values = self._draws.pop(seed, None)
        if values is None:
            values = references.drawn(self._problem, seed, self._settings.small, device=self.session.device)
        home = torch.device("cpu") if self.session.thrift is Thrift.HOST else self.session.device
        placed: list[Any] = references.placed(values, home)
        return placed

    def _second(self, x: list[Any], seed: int) -> tuple[list[Any], str]:
        """The inputs of call 2, and what they are called."""
        if self._before is None:
            return self._drawn(seed), "another draw"
        before, number = self._before[0], self.records[-1].number
        return (before, _OLD_X) if number % 2 == 0 else (partly(x, before, seed), "x partly changed")

    def _rewritten(self, inputs: Inputs, values: list[Any]) -> Inputs:
        """New values at the same addresses, or elsewhere where the problem's shapes change from draw to draw."""
        with self._clock.part("place inputs"):
            try:
                inputs.rewrite(values)
            except ValueError:
                inputs.release()
                return self.session.put(values)
        return inputs

    def _kept(self, made: CallRecord) -> list[torch.Tensor] | None:
        """Copies of what the solution just returned, or None when it returned something else."""
        if made.compared is None or made.compared.structure or self.outputs is None:
            return None
        return [tensor.clone() for tensor in self.outputs.tensors()]

    def _survived(
        self,
        record: TrialRecord,
        held: int,
        expected: list[torch.Tensor],
        before: list[torch.Tensor],
        tree: structure.Node,
    ) -> None:
        """The result of call 1, read again after call 2."""
        first = record.calls[0].compared
        if first is None or not first.passed:
            return
        assert self.outputs is not None
        if structure.bare(self.outputs.expected) != structure.bare(tree):
            self.outputs.release()
            self.outputs = self.session.expect(tree)
        paths = [path for path, _ in structure.tensors(tree)]
        copied = self.session.again(held, self.outputs)
        for index, (one, kept) in enumerate(zip(expected, before, strict=True)):
            if not _same(one, kept) or index >= len(copied):
                continue  # the reference's own result does not survive either
            path = paths[index]
            tolerance = self.tolerances.get(path, self.default)
            slot = self.outputs.tensors()[index]
            if not copied[index] or not compare(kept, slot, tolerance.atol, tolerance.rtol, locate=False).passed:
                self.findings.fail(
                    "overwritten_result",
                    f"the result of call 1 changed when call 2 ran or its input was rewritten ({path}): "
                    "ModelNew returns memory it uses again, or a view of its input",
                    trial=record.number,
                )

    def _repeatable(
        self,
        record: TrialRecord,
        first: CallRecord,
        third: CallRecord,
        one: list[torch.Tensor],
        two: list[torch.Tensor],
        given: list[torch.Tensor] | None,
    ) -> None:
        """Calls 1 and 3 had the same values: the results should be the same, and when they are not, by how much."""
        if given is None or self.outputs is None or third.compared is None or third.compared.structure:
            return
        if not all(_same(a, b) for a, b in zip(one, two, strict=True)):
            record.repeatable = "not expected: Model's own answers differ"
            return
        moved = [compare(a, b, 0.0, 0.0, locate=False) for a, b in zip(given, self.outputs.tensors(), strict=True)]
        differing = sum(item.failing for item in moved)
        if not differing:
            record.repeatable = "bit for bit"
            return
        most = max(item.max_abs for item in moved)
        record.repeatable = f"{differing:,} elements differ, by up to {most:.3g}"
        assert first.compared is not None
        if first.compared.passed != third.compared.passed:
            sentence = (
                f"the same inputs gave a right and a wrong answer ({record.repeatable}): a race, or "
                "memory that was never initialised, is likely"
            )
            self.findings.fail("race", sentence, trial=record.number)
        elif first.compared.passed:
            sentence = (
                f"the same inputs do not give the same bits ({record.repeatable}), all within the "
                "tolerance: usual for atomics"
            )
            self.findings.note("repeatability", sentence, trial=record.number)

    def _compare_state(self, record: TrialRecord, reference: Reference) -> None:
        """Buffers after the calls: running statistics and the like must have moved alike."""
        state = reference.state()
        names = reference.buffers()
        if not names:
            return
        values = [state[name].detach() for name in names]
        outputs = self.session.expect(references.describe(values))
        try:
            missing = set(self.session.state(outputs, names))
            for name, value, slot in zip(names, values, outputs.tensors(), strict=True):
                if name in missing:
                    self.findings.fail("buffers", f"after the calls ModelNew no longer has the buffer {name}")
                    continue
                found = compare(value, slot, self.default.atol, self.default.rtol, locate=False)
                if not found.passed:
                    record.state_differs.append(name)
                    self.findings.fail(
                        "buffers",
                        f"the buffer {name} differs after the same calls: expected {found.worst_expected}, "
                        f"got {found.worst_actual}",
                        trial=record.number,
                    )
        finally:
            outputs.release()

    def _note_ops(self, ops: list[dict[str, Any]]) -> None:
        for item in ops:
            known = self.ops.setdefault((item["phase"], item["op"]), {**item, "count": 0})
            known["count"] += item["count"]


def _aliases(results: list[torch.Tensor], memory: list[int]) -> list[bool]:
    """For each of the reference's results, whether it shares storage with an input."""
    return [bool(tensor.numel()) and tensor.untyped_storage().data_ptr() in memory for tensor in results]


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    return compare(one, two, 0.0, 0.0, locate=False).passed
