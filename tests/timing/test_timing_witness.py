"""The judge's wall clock against the reported times."""

import random

import pytest

from utils.timing.witness import judge, surroundings


def batches(reported_ms, around_ms, hidden_ms=0.0, count=10, calls=40, seed=0, jitter=0.02):
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        samples = [reported_ms * (1 + draw.gauss(0, 0.01)) for _ in range(calls)]
        wall = sum(samples) + calls * (around_ms * (1 + draw.gauss(0, jitter)) + hidden_ms)
        made.append((wall / 1e3, samples))
    return made


def test_surroundings_come_from_the_trusted_side():
    assert surroundings(batches(2.0, 0.3)) == pytest.approx(0.3, rel=0.1)
    assert surroundings([]) == 0.0


@pytest.mark.parametrize("ms", [0.005, 0.05, 1.0, 20.0])
def test_honest_times_agree(ms):
    assert judge(batches(ms, 0.12), surroundings(batches(ms * 1.7, 0.12, seed=5))).agrees


def test_one_preempted_batch_accuses_nobody():
    made = batches(1.0, 0.1)
    made[4] = (made[4][0] * 5, made[4][1])
    assert judge(made, 0.1).agrees


@pytest.mark.parametrize("hidden", [0.2, 5.0])
def test_work_on_another_stream_is_refused_by_how_much(hidden):
    """Events say 10 µs; the device needs `hidden` ms more per call."""
    found = judge(batches(0.01, 0.12, hidden), 0.12)
    assert not found.agrees
    assert found.hidden_ms == pytest.approx(hidden, rel=0.15)
    assert f"{found.hidden_ms:.4f} ms" in found.sentence


def test_a_halved_timer_is_refused():
    honest = batches(4.0, 0.1)
    assert not judge([(wall, [s / 2 for s in samples]) for wall, samples in honest], 0.1).agrees


def test_reported_times_longer_than_the_wall_clock_are_refused():
    """A side that reports more than passed (to make itself look slow, or a broken clock) is as wrong."""
    honest = batches(1.0, 0.0, jitter=0.0)
    found = judge([(wall, [s * 1.5 for s in samples]) for wall, samples in honest], 0.0)
    assert not found.agrees
    assert "exceed" in found.sentence


def test_no_samples_is_no_agreement():
    assert not judge([(0.1, [])], 0.1).agrees
