"""The solution and the baselines as sides of the rounds: every timed call is one `call` of the judge's session.

A call is asked for on its own, its outputs poisoned before and copied into the judge's memory after it, whether the
judge will compare them or only use the time: the runner cannot tell, and a random share of the timed calls is compared.
Before every call, of baselines too, the input values change in place (utils.timing.mixing), so that an answer
remembered from an earlier call is of no use; the reference computes what is compared afterwards. Now and then the
inputs move to other addresses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from utils.judge import structure
from utils.judge.failure import RunnerFailed
from utils.present.outcome import CannotTell
from utils.timing.rounds import Batch, SideFailed
from utils.timing.variants import Variant
from utils.timing.work import changed, walk

if TYPE_CHECKING:
    import torch

    from utils.judge.comparing import Compared, Tolerance
    from utils.judge.handles import Outputs
    from utils.judge.session import Called
    from utils.problem.problem import Problem
    from utils.timing.baselines import BaselineSession
    from utils.timing.sessions import TimedSession

# Inputs and outputs beyond this many bytes are drawn only once; values then come from other places of that draw.
_DRAW_BYTES = 1 << 30
# Copies of outputs that wait for the end of a turn to be compared.
_KEPT_BYTES = 1 << 28
_CHECKED_SHARE = 0.1
_MOVED_SHARE = 0.1


class NotSame(Exception):
    """A timed call gave another result than the reference: the message is one sentence."""


@dataclass
class Draw:
    """One set of inputs with what the reference makes of them."""

    args: list[Any]
    expected: list[torch.Tensor]
    tree: structure.Node


@dataclass
class Kept:
    """A call with copies of its outputs, and the seeds from which its inputs and its random numbers come again.

    Holds what utils.judge.comparing reads of Outputs.
    """

    called: Called
    copies: list[torch.Tensor]
    poison_seed: int
    expected: structure.Node
    values_seed: int
    call_seed: int

    def tensors(self) -> list[torch.Tensor]:
        return self.copies


class Trial:
    """The reference on the device, its weights, a first draw of inputs with its expected output, and `values`.

    `values` are the inputs of the next call, new after every `renew`: no two calls of any side see the same ones.
    `seed` seeds construction and weights on every side alike. `stateful`: the reference's answer depends on earlier
    calls, or on random numbers that the solution draws otherwise, so that outputs of timed calls cannot be compared.
    Raises CannotTell when the reference does not run.
    """

    def __init__(
        self, problem: Problem, device: torch.device, seed: int, *, train: bool = False, small: bool = False
    ) -> None:
        from utils.judge.reference import Reference, drawn
        from utils.timing.mixing import Mixed

        self.seed, self.train = seed, train
        self.reference = Reference(problem, device, seed=seed, train=train, small=small)
        self.init_args = self.reference.init_arguments
        self.state = _changed(dict(self.reference.state()), lambda tensor: tensor.detach().clone())
        first, second = _placed(drawn(problem, seed + 1, small, device=device), device), None
        self.first, again = (self.answered(first, seed) for _ in range(2))
        self.stateful = not all(_close(one, two) for one, two in zip(self.first.expected, again.expected, strict=False))
        if sum(tensor.nbytes for tensor in [*walk(first), *self.first.expected]) <= _DRAW_BYTES:
            second = _placed(drawn(problem, seed + 2, small, device=device), device)
        self._mixed = Mixed(first, second)
        self.values = self._mixed.values
        self.renew(seed + 3)
        try:
            self.answered(self.values, seed)
        except CannotTell:
            # A problem that needs its inputs as drawn (a positive definite matrix, say).
            self._mixed.whole = True

    def renew(self, seed: int) -> None:
        """Other inputs in `values`, at the same addresses."""
        self._mixed.renew(seed)

    def answered(self, args: list[Any], seed: int) -> Draw:
        """`args` with what the reference makes of them, computed now, in full precision."""
        from utils.judge.reference import describe, full_precision, tensors

        # A reference may write into its inputs; the solution must see them as they were drawn.
        given = _changed(args, lambda tensor: tensor.detach().clone())
        with full_precision():
            output = self.reference.run(given, {}, seed=seed)
        return Draw(args, [tensor.clone() for tensor in tensors(output)], describe(output))


class Stand:
    """A session with the trial's model, weights and inputs in place, ready to call."""

    def __init__(self, session: TimedSession, trial: Trial, seed: int) -> None:
        self.session, self.trial = session, trial
        self._random = random.Random(seed)
        # The runner sees the seeds of its calls: they must not tell what else is drawn.
        self._seeds = random.Random(f"{seed}/calls")
        self._drawn = (trial.seed, trial.seed)
        session.construct(trial.init_args, seed=trial.seed, train=trial.train)
        session.load(trial.state)
        self.inputs = session.put(trial.first.args)
        self.outputs = session.expect(trial.first.tree)

    def relocate(self) -> None:
        """Moves the inputs to other addresses, now and then."""
        if self._random.random() < _MOVED_SHARE:
            self.inputs.move()

    def call(self) -> Called:
        """One call on new values; raises RunnerFailed, and NotSame for a launch that was refused."""
        self._drawn = self._random.randrange(1 << 62), self._seeds.randrange(1 << 62)
        self.trial.renew(self._drawn[0])
        self.inputs.rewrite(self.trial.values)
        called = self.session.call(self.inputs, self.outputs, seed=self._drawn[1], late=False)
        if called.launch_error:
            raise NotSame(f"a kernel launch failed: {called.launch_error}")
        return called

    def keep(self, called: Called) -> Kept:
        """The outputs of the call just made, to be compared when there is time."""
        copies = [tensor.clone() for tensor in self.outputs.tensors()]
        return Kept(called, copies, self.outputs.poison_seed, self.outputs.expected, *self._drawn)

    def judged(self, kept: Kept, tolerances: Mapping[str, Tolerance], default: Tolerance) -> Compared:
        """The outputs of a call beside the reference's, which computes them now, from the same inputs."""
        from utils.judge.comparing import Compared, compare_result

        self.trial.renew(kept.values_seed)
        answer = self.trial.answered(self.trial.values, kept.call_seed)
        if structure.bare(answer.tree) != structure.bare(kept.expected):
            # The shape of the result depends on the values: its slots do not fit, its structure can still be told.
            return Compared(structure.differences(answer.tree, kept.called.out))
        kept.expected = answer.tree
        return compare_result(answer.expected, cast("Outputs", kept), kept.called, tolerances, default)

    def compared(self, called: Called, tolerances: Mapping[str, Tolerance], default: Tolerance) -> Compared:
        """The outputs of the call just made beside the reference's."""
        return self.judged(self.keep(called), tolerances, default)


class SolutionSide:
    """The solution. `checked` counts timed calls whose outputs were compared."""

    name = "solution"

    def __init__(
        self, stand: Stand, seed: int, default: Tolerance, tolerances: Mapping[str, Tolerance] | None = None
    ) -> None:
        self.stand = stand
        self.checked = 0
        self._default, self._tolerances = default, tolerances or {}
        self._random = random.Random(seed)

    def run(self, calls: int) -> Batch:
        samples, wall = [], 0.0
        waiting: list[Kept] = []
        try:
            self.stand.relocate()
            # One call of every turn is compared, and none can tell which.
            surely = self._random.randrange(calls)
            for number in range(calls):
                called = self.stand.call()
                samples.append(called.device_ms[0])
                wall += called.wall_s
                if (number == surely or self._random.random() < _CHECKED_SHARE) and not self.stand.trial.stateful:
                    waiting.append(self.stand.keep(called))
                    if sum(tensor.nbytes for kept in waiting for tensor in kept.copies) > _KEPT_BYTES:
                        self._judge(waiting)
            # After the turn: what the reference does to clocks and caches shall not touch the next call of this one.
            self._judge(waiting)
        except RunnerFailed as failed:
            raise SideFailed(failed.sentence) from failed
        return Batch(tuple(samples), wall)

    def _judge(self, waiting: list[Kept]) -> None:
        while waiting:
            self.checked += 1
            found = self.stand.judged(waiting.pop(), self._tolerances, self._default)
            if not found.passed:
                raise NotSame(f"the output of a timed call differs from the reference: {found.sentences()[0]}")


class BaselineSide:
    """One prepared variant of a baseline session."""

    def __init__(self, stand: Stand, session: BaselineSession, variant: Variant) -> None:
        self.stand, self.session, self.variant = stand, session, variant

    @property
    def name(self) -> str:
        return self.variant.key

    def run(self, calls: int) -> Batch:
        from utils.timing.baselines import told

        samples, wall = [], 0.0
        try:
            self.session.select(self.variant.mode)
            for _ in range(calls):
                called = self.stand.call()
                samples.append(called.device_ms[0])
                wall += called.wall_s
        except RunnerFailed as failed:
            raise SideFailed(told(failed)) from failed
        except NotSame as failed:
            raise SideFailed(str(failed)) from failed
        return Batch(tuple(samples), wall)


def _changed(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """`value` with every tensor changed; one tensor that occurs twice stays one."""
    seen: dict[int, torch.Tensor] = {}

    def once(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in seen:
            seen[id(tensor)] = change(tensor)
        return seen[id(tensor)]

    return changed(value, once)


def _placed(args: list[Any], device: torch.device) -> list[Any]:
    return list(_changed(args, lambda tensor: tensor.detach().to(device).requires_grad_(tensor.requires_grad)))


def _close(one: torch.Tensor, two: torch.Tensor) -> bool:
    """The same up to the order in which a GPU adds; NaN equals NaN."""
    import torch

    return (
        torch.allclose(one, two, rtol=1e-3, atol=1e-3, equal_nan=True)
        if one.dtype != torch.bool
        else bool(torch.equal(one, two))
    )
