"""The verdict's statistics on synthetic samples: what a GPU does to times, made of random numbers with known truth."""

import math
import random

import pytest

from utils.timing import statistics as st


def rounds(truth, count=16, per_turn=40, spread=0.01, seed=0, drift=0.0, wobble=0.0, outliers=0.0, step=0.0, carry=0.0):
    """(new, base) turns in ms: base is 1 ms, new `truth` ms.

    spread: relative noise of a call; drift: common relative drift over all rounds; wobble: noise of a whole turn;
    carry: share of
    a turn's wobble that comes from the turn before; outliers: share of calls ten times as long; step: timer quantum.
    """
    draw = random.Random(seed)
    last = {"new": 0.0, "base": 0.0}
    sides = {"new": [], "base": []}
    for number in range(count):
        common = 1 + drift * number / count
        for name, level in (("new", truth), ("base", 1.0)):
            last[name] = carry * last[name] + math.sqrt(1 - carry**2) * draw.gauss(0, wobble)
            turn = []
            for _ in range(per_turn):
                value = level * common * (1 + last[name]) * (1 + abs(draw.gauss(0, spread)))
                value *= 10 if draw.random() < outliers else 1
                turn.append(max(step, round(value / step) * step) if step else value)
            sides[name].append(turn)
    return sides["new"], sides["base"]


def verdict_of(*args, **kwargs):
    return st.verdict(st.ratio(*rounds(*args, **kwargs)))


class TestSamples:
    def test_what_is_no_duration_is_dropped_and_counted(self):
        cleaned = st.clean([1.0, 0.0, -0.5, math.nan, math.inf, 2.0])
        assert cleaned.kept == (1.0, 2.0)
        assert cleaned.dropped == 4

    def test_summary_counts_dropped_samples_over_all_turns(self):
        summary = st.summary([[1.0, -1.0], [], [2.0, 0.0, 3.0]])
        assert (summary.count, summary.dropped, summary.median, summary.minimum) == (3, 2, 2.0, 1.0)

    def test_no_usable_sample_gives_no_summary_and_no_ratio(self):
        assert st.summary([[0.0], []]) is None
        assert st.ratio([[0.0]], [[1.0]]) is None
        assert st.verdict(None) == st.UNSURE

    def test_quantile_interpolates(self):
        assert st.quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
        assert st.quantile([7.0], 0.9) == 7.0
        with pytest.raises(ValueError, match="no samples"):
            st.quantile([], 0.5)

    def test_quantum_finds_the_timer_step(self):
        assert st.quantum([0.005 + 0.000032 * n for n in (0, 1, 1, 3, 7)] * 10) == pytest.approx(0.000032)
        assert st.quantum([1.0] * 60) == 0.0
        assert st.quantum([1.0, 1.3, 1.7]) == 0.0

    def test_noise_ignores_outliers(self):
        calm = [1.0, 1.01, 0.99, 1.0, 1.02]
        assert st.noise([*calm, 50.0]) < 0.03


class TestRatio:
    def test_value_and_interval_bracket_the_truth(self):
        measured = st.ratio(*rounds(0.7, wobble=0.004))
        assert measured.value == pytest.approx(0.7, rel=0.01)
        assert measured.low < 0.7 < measured.high
        assert measured.rounds == 16

    def test_common_drift_cancels(self):
        measured = st.ratio(*rounds(1.0, drift=0.5))
        assert measured.high - measured.low < 0.02

    def test_outliers_do_not_move_it(self):
        assert st.ratio(*rounds(0.9, outliers=0.05)).value == pytest.approx(0.9, rel=0.01)

    def test_a_whole_bad_round_does_not_move_it(self):
        new, base = rounds(1.0)
        new[3] = [sample * 4 for sample in new[3]]
        assert st.ratio(new, base).value == pytest.approx(1.0, rel=0.005)

    def test_bimodal_clock_shared_by_both_sides_cancels(self):
        new, base = rounds(0.97, count=20)
        for number in range(0, 20, 3):
            new[number] = [sample * 1.3 for sample in new[number]]
            base[number] = [sample * 1.3 for sample in base[number]]
        assert st.ratio(new, base).value == pytest.approx(0.97, rel=0.005)

    def test_rounds_missing_on_one_side_are_left_out(self):
        new, base = rounds(0.8, count=10)
        base[4] = []
        new[7] = [0.0, -1.0]
        assert st.ratio(new, base).rounds == 8

    def test_one_round_has_no_interval(self):
        measured = st.ratio([[1.0, 1.1]], [[2.0, 2.1]])
        assert measured.high == math.inf
        assert st.verdict(measured) == st.UNSURE
        assert st.target_state(measured, 0.95) == st.OPEN

    def test_fewer_rounds_give_a_wider_interval(self):
        few, many = st.ratio(*rounds(1.0, count=4, wobble=0.01)), st.ratio(*rounds(1.0, count=40, wobble=0.01))
        assert few.half_width > 2 * many.half_width

    def test_rounds_that_lean_on_each_other_widen_the_interval(self):
        loose = [st.ratio(*rounds(1.0, count=40, wobble=0.01, seed=s)).half_width for s in range(6)]
        tied = [st.ratio(*rounds(1.0, count=40, wobble=0.01, carry=0.8, seed=s)).half_width for s in range(6)]
        assert st.median(tied) > 1.4 * st.median(loose)

    def test_what_two_processes_never_share_widens_short_times(self):
        new, base = rounds(1.0, spread=0.02)
        tiny = st.ratio([[s * 0.005 for s in t] for t in new], [[s * 0.005 for s in t] for t in base])
        # 0.2 µs of unexplained latency is four per cent of 5 µs.
        assert tiny.high - tiny.low > 0.08

    def test_the_seed_makes_it_repeatable(self):
        data = rounds(1.0, wobble=0.01)
        assert st.ratio(*data, seed=1) == st.ratio(*data, seed=1)

    def test_the_interval_covers_the_truth_nearly_always(self):
        """At 99 % nominal, 300 experiments of ten rounds: no more than nine misses even without the floors' help."""
        misses = 0
        for seed in range(300):
            measured = st.ratio(*rounds(1.0, count=10, per_turn=5, wobble=0.01, seed=seed), seed=seed)
            low, high = measured.low * math.exp(measured.floor), measured.high * math.exp(-measured.floor)
            misses += not low <= 1.0 <= high
        assert misses <= 9


class TestVerdict:
    @pytest.mark.parametrize(
        "truth, expected", [(0.9, st.FASTER), (1.0, st.SAME), (1.03, st.SLOWER), (0.5, st.FASTER), (3.0, st.SLOWER)]
    )
    def test_clear_cases(self, truth, expected):
        assert verdict_of(truth, wobble=0.002) == expected

    def test_noise_that_hides_the_answer_is_unsure(self):
        assert verdict_of(0.98, count=8, wobble=0.05) == st.UNSURE

    def test_identical_sides_are_never_called_different(self):
        """200 A/A comparisons with drift, turn noise, carry-over and outliers."""
        for seed in range(200):
            draw = random.Random(1000 + seed)
            said = verdict_of(1.0, count=8 + seed % 12, per_turn=10, seed=seed, drift=draw.uniform(-0.3, 0.3),
                              wobble=draw.uniform(0, 0.02), outliers=0.02, carry=draw.uniform(0, 0.6))  # fmt: skip
            assert said in (st.SAME, st.UNSURE), seed

    def test_three_per_cent_slower_is_recognised(self):
        """100 comparisons at 50 µs with the turn noise of a busy data-centre GPU (0.3 %)."""
        recognised = 0
        for seed in range(100):
            new, base = rounds(1.03, count=12, per_turn=20, wobble=0.003, seed=seed, drift=0.1)
            small = [[[sample * 0.05 for sample in turn] for turn in side] for side in (new, base)]
            recognised += st.verdict(st.ratio(*small)) == st.SLOWER
        assert recognised >= 95

    def test_launches_that_take_longer_in_one_process_are_no_difference(self):
        """Sixteen kernels of about 1 µs in two processes of an H200: 34.7 µs in one, 37.4 in the other, all day."""
        new, base = ([[sample * ms for sample in turn] for turn in rounds(1.0)[0]] for ms in (0.0374, 0.0347))
        assert st.verdict(st.ratio(new, base)) == st.SLOWER
        assert st.verdict(st.ratio(new, base, launches=(16, 16))) == st.UNSURE

    def test_many_launches_on_one_side_leave_the_other_side_exact(self):
        """One kernel of 4 µs for sixteen of 37: what is in doubt is 0.1 µs of the one and 1.6 of the others."""
        new, base = ([[sample * ms for sample in turn] for turn in rounds(1.0)[0]] for ms in (0.004, 0.037))
        measured = st.ratio(new, base, launches=(1, 16))
        assert st.verdict(measured) == st.FASTER
        assert measured.floor == pytest.approx(0.002 + 0.1 / 4 + 1.6 / 37, rel=0.1)

    def test_a_difference_within_the_resolution_is_not_claimed(self):
        assert verdict_of(0.993, count=30) in (st.SAME, st.UNSURE)

    def test_constant_samples(self):
        assert st.verdict(st.ratio([[1.0] * 5] * 8, [[1.0] * 5] * 8)) == st.SAME
        assert st.verdict(st.ratio([[0.5] * 5] * 8, [[1.0] * 5] * 8)) == st.FASTER

    def test_target(self):
        assert st.target_state(st.ratio(*rounds(0.9, wobble=0.002)), 0.95) == st.MET
        assert st.target_state(st.ratio(*rounds(0.97, wobble=0.002)), 0.95) == st.MISSED
        assert st.target_state(st.ratio(*rounds(0.95, wobble=0.002)), 0.95) == st.OPEN


class TestStopping:
    def test_floor_of_rounds_comes_first(self):
        assert st.enough(3, [0.0001], elapsed=1.0, budget=5.0) is None

    def test_precision_then_budget(self):
        assert st.enough(8, [0.002, 0.001], elapsed=1.0, budget=5.0) == "precise"
        assert st.enough(8, [0.002, 0.02], elapsed=1.0, budget=5.0) is None
        assert st.enough(8, [0.002, 0.02], elapsed=5.0, budget=5.0) == "budget"

    def test_twice_the_budget_ends_it_under_the_floor(self):
        assert st.enough(4, [], elapsed=10.0, budget=5.0) == "budget"
        assert st.enough(3, [], elapsed=10.0, budget=5.0) is None

    def test_no_decisive_baseline_left_means_the_budget_decides(self):
        assert st.enough(20, [], elapsed=1.0, budget=5.0) is None

    @pytest.mark.parametrize(
        "call_ms, overhead_ms, expected",
        [(0.005, 0.1, 200), (1.0, 0.2, 50), (100.0, 0.1, 5), (0.0, 0.0, 200), (math.nan, 1.0, 200)],
    )
    def test_calls_per_turn(self, call_ms, overhead_ms, expected):
        assert st.calls_per_turn(call_ms, overhead_ms) == expected
