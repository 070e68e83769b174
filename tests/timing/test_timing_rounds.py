"""Interleaved sampling with sides made of numbers, a clock that only moves when a call is made, and throttling on
demand."""

import random

import pytest

from utils.timing import statistics
from utils.timing.rounds import LEAD_IN, Batch, SideFailed, sample


class World:
    """A clock in seconds that calls advance."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def clock(self):
        return self.now

    def rest(self, seconds):
        self.now += seconds
        self.log.append(("rest", seconds))


class FakeSide:
    def __init__(self, name, world, ms, spread=0.005, fail_after=None, seed=0):
        self.name, self.world, self.ms, self.spread, self.fail_after = name, world, ms, spread, fail_after
        self.draw = random.Random(seed)
        self.runs = []

    def run(self, calls):
        if self.fail_after is not None and len(self.runs) >= self.fail_after:
            raise SideFailed(f"{self.name} broke")
        samples = tuple(self.ms * (1 + abs(self.draw.gauss(0, self.spread))) for _ in range(calls))
        wall = (sum(samples) + 0.1 * calls) / 1e3
        self.world.now += wall
        self.runs.append(calls)
        self.world.log.append((self.name, calls))
        return Batch(samples, wall)


def take(world, new, bases, **options):
    settings = {
        "budget": 6.0,
        "seed": 1,
        "decisive": [bases[0].name] if bases else [],
        "clock": world.clock,
        "rest": world.rest,
    }
    return sample(new, bases, **{**settings, **options})


@pytest.fixture
def world():
    return World()


def test_every_side_takes_one_turn_a_round_and_rounds_pair_up(world):
    new, base, other = FakeSide("solution", world, 1.0), FakeSide("compile", world, 2.0), FakeSide("eager", world, 3.0)
    got = take(world, new, [base, other])
    assert got.rounds >= statistics.MIN_ROUNDS
    for name in ("solution", "compile", "eager"):
        assert [turn.round for turn in got.turns[name]] == list(range(got.rounds))
    measured = statistics.ratio(got.samples("solution"), got.samples("compile"))
    assert measured.value == pytest.approx(0.5, rel=0.01)
    assert statistics.verdict(measured) == statistics.FASTER


def test_order_changes_between_rounds_and_follows_the_seed(world):
    def order(seed):
        here = World()
        take(here, FakeSide("solution", here, 1.0), [FakeSide("compile", here, 1.0)], seed=seed)
        return [name for name, _ in here.log]

    assert order(1) == order(1)
    assert order(1) != order(2)
    log = order(3)[-16:]
    firsts = {log[index] for index in range(0, len(log), 2)}
    assert firsts == {"solution", "compile"}


def test_lead_in_calls_are_recorded_but_not_counted(world):
    new, base = FakeSide("solution", world, 1.0), FakeSide("compile", world, 1.0)
    got = take(world, new, [base])
    turn = got.turns["solution"][0]
    assert len(turn.lead_in) == LEAD_IN
    assert len(turn.samples) == got.calls["solution"]
    assert len(got.batches("solution")[0][1]) == got.calls["solution"] + LEAD_IN


def test_it_stops_when_precise_long_before_the_budget(world):
    got = take(world, FakeSide("solution", world, 1.0), [FakeSide("compile", world, 2.0)], budget=60.0)
    assert got.stopped == "precise"
    assert got.seconds < 30


def test_noise_uses_the_whole_budget_and_not_much_more(world):
    got = take(
        world,
        FakeSide("solution", world, 1.0, spread=0.5),
        [FakeSide("compile", world, 1.0, spread=0.5, seed=9)],
        budget=3.0,
    )
    assert got.stopped == "budget"
    assert 3.0 <= got.seconds < 4.5


def test_calls_so_slow_that_the_floor_exceeds_the_budget_still_end(world):
    got = take(world, FakeSide("solution", world, 500.0), [FakeSide("compile", world, 500.0)], budget=2.0)
    assert got.rounds == 4
    assert got.stopped == "budget"
    assert (got.calls["solution"], got.lead_in["solution"]) == (2, 1)
    assert statistics.ratio(got.samples("solution"), got.samples("compile")) is not None


def test_a_failing_baseline_drops_out_and_the_rest_goes_on(world):
    new, base = FakeSide("solution", world, 1.0), FakeSide("compile", world, 2.0)
    early, late = (
        FakeSide("max-autotune", world, 1.0, fail_after=0),
        FakeSide("reduce-overhead", world, 1.0, fail_after=9),
    )
    got = take(world, new, [base, early, late])
    assert got.failed == {"max-autotune": "max-autotune broke", "reduce-overhead": "reduce-overhead broke"}
    assert got.rounds >= statistics.MIN_ROUNDS
    assert "max-autotune" not in got.turns


def test_a_failing_solution_ends_it(world):
    with pytest.raises(SideFailed, match="solution broke"):
        take(world, FakeSide("solution", world, 1.0, fail_after=9), [FakeSide("compile", world, 2.0)])


def test_throttled_turns_are_retaken_after_a_rest(world):
    heat = [0.9, 1.5]

    def throttled(start, end):
        return ["thermal slowdown (hardware)"] if start < heat[1] and end > heat[0] else []

    new, base = FakeSide("solution", world, 1.0, spread=0.05), FakeSide("compile", world, 1.0, spread=0.05)
    got = take(world, new, [base], throttled=throttled)
    assert got.retaken
    assert ("rest", 0.5) in world.log
    assert got.throttled_kept == 0
    assert all(not turn.throttled for turns in got.turns.values() for turn in turns)
    assert all(turn.throttled for _, turn in got.retaken)


def test_a_gpu_that_always_throttles_still_gives_an_answer_and_says_so(world):
    new, base = FakeSide("solution", world, 1.0), FakeSide("compile", world, 2.0)
    got = take(world, new, [base], throttled=lambda start, end: ["power brake"], budget=5.0)
    assert got.throttled_kept > 0
    assert got.rounds >= 2
    # Not every turn was taken three times over.
    assert len(got.retaken) <= got.throttled_kept + 3


def test_zero_and_negative_times_do_not_divide_by_zero(world):
    class Broken(FakeSide):
        def run(self, calls):
            batch = super().run(calls)
            return Batch(tuple(0.0 if i % 2 else -1.0 for i in range(calls)), batch.wall)

    got = take(world, Broken("solution", world, 1.0), [FakeSide("compile", world, 2.0)], budget=1.0)
    assert statistics.ratio(got.samples("solution"), got.samples("compile")) is None
    assert statistics.summary(got.samples("solution")) is None
