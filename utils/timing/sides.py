"""The solution and the baselines as sides of the rounds: every timed call is one `call` of the judge's session.

A call is asked for on its own, its outputs poisoned before and copied into the judge's memory after it, whether the
judge will compare them or only use the time: the runner cannot tell, and a random share of the timed calls is compared.
Between turns the input values change in place, and now and then the inputs move to other addresses.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from utils.judge import structure
from utils.judge.failure import RunnerFailed
from utils.timing.rounds import Batch, SideFailed
from utils.timing.variants import Variant
from utils.timing.work import changed, walk

if TYPE_CHECKING:
    import torch

    from utils.judge.comparing import Compared, Tolerance
    from utils.judge.session import Called
    from utils.problem.problem import Problem
    from utils.timing.baselines import BaselineSession
    from utils.timing.sessions import TimedSession

# Two input draws alternate unless they would take more than this many bytes each.
_DRAW_BYTES = 1 << 30
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


class Trial:
    """The reference on the device, its weights, and one or two input draws with expected outputs.

    `seed` seeds construction, weights, inputs and forward on every side alike. `stateful`: the reference's answer
    depends
    on earlier calls, so that outputs of timed calls cannot be compared. Raises CannotTell when the reference does not
    run.
    """

    def __init__(
        self, problem: Problem, device: torch.device, seed: int, *, train: bool = False, small: bool = False
    ) -> None:
        from utils.judge.reference import Reference, drawn, full_precision

        self.seed, self.train = seed, train
        self.reference = Reference(problem, device, seed=seed, train=train, small=small)
        self.init_args = self.reference.init_arguments
        self.state = _changed(dict(self.reference.state()), lambda tensor: tensor.detach().clone())
        self.draws: list[Draw] = []
        with full_precision():
            for number in range(2):
                args = list(_changed(drawn(problem, seed + 1 + number, small), lambda tensor: tensor.to(device)))
                # Values can change in place only where the problem's shapes stay.
                if self.draws and _layout(args) != _layout(self.draws[0].args):
                    break
                self.draws.append(self._draw(args))
                if sum(tensor.nbytes for tensor in [*walk(args), *self.draws[0].expected]) > _DRAW_BYTES:
                    break
            again = self._draw(self.draws[0].args)
        self.stateful = not all(
            _close(one, two) for one, two in zip(self.draws[0].expected, again.expected, strict=False)
        )

    def _draw(self, args: list[Any]) -> Draw:
        from utils.judge.reference import describe, tensors

        # A reference may write into its inputs; the solution must see them as they were drawn.
        given = _changed(args, lambda tensor: tensor.detach().clone())
        output = self.reference.run(given, {}, seed=self.seed)
        return Draw(args, [tensor.clone() for tensor in tensors(output)], describe(output))


class Stand:
    """A session with the trial's model, weights and inputs in place, ready to call."""

    def __init__(self, session: TimedSession, trial: Trial, seed: int) -> None:
        self.session, self.trial = session, trial
        self._random = random.Random(seed)
        session.construct(trial.init_args, seed=trial.seed, train=trial.train)
        session.load(trial.state)
        self.draw = trial.draws[0]
        self.inputs = session.put(self.draw.args)
        self.outputs = session.expect(self.draw.tree)

    def shuffle(self, move: bool) -> None:
        """New values at the same addresses, and sometimes other addresses."""
        if len(self.trial.draws) > 1:
            self.draw = self._random.choice(self.trial.draws)
            self.inputs.rewrite(self.draw.args)
        if move and self._random.random() < _MOVED_SHARE:
            self.inputs.move()

    def call(self) -> Called:
        """One call; raises RunnerFailed, and NotSame for a launch that was refused."""
        called = self.session.call(self.inputs, self.outputs, seed=self.trial.seed, late=False)
        if called.launch_error:
            raise NotSame(f"a kernel launch failed: {called.launch_error}")
        return called

    def compared(self, called: Called, tolerances: Mapping[str, Tolerance], default: Tolerance) -> Compared:
        """The outputs of the call just made beside the reference's."""
        from utils.judge.comparing import compare_result

        return compare_result(self.draw.expected, self.outputs, called, tolerances, default)


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
        try:
            self.stand.shuffle(move=True)
            for number in range(calls):
                called = self.stand.call()
                samples.append(called.device_ms[0])
                wall += called.wall_s
                if (number == 0 or self._random.random() < _CHECKED_SHARE) and not self.stand.trial.stateful:
                    self.checked += 1
                    found = self.stand.compared(called, self._tolerances, self._default)
                    if not found.passed:
                        raise NotSame(f"the output of a timed call differs from the reference: {found.sentences()[0]}")
        except RunnerFailed as failed:
            raise SideFailed(failed.sentence) from failed
        return Batch(tuple(samples), wall)


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
            self.stand.shuffle(move=False)
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


def _layout(args: list[Any]) -> list[Any]:
    return [(tensor.shape, tensor.stride(), tensor.dtype) for tensor in walk(args)]


def _close(one: torch.Tensor, two: torch.Tensor) -> bool:
    """The same up to the order in which a GPU adds; NaN equals NaN."""
    import torch

    return (
        torch.allclose(one, two, rtol=1e-3, atol=1e-3, equal_nan=True)
        if one.dtype != torch.bool
        else bool(torch.equal(one, two))
    )
