"""Tuning: every value of a configuration verified before it is timed, and the best one chosen."""

import pytest
from timed_solutions import solution_in

from utils.judge.sandbox import Policy
from utils.timing import rounds, tune
from utils.timing.gpu import Monitor
from utils.timing.run import Options
from utils.timing.sites import Site, find_sites
from utils.timing.tune import sweep

CONFIGURED = """
    def choose(self, x, config=0):
        if config < 0 or config > 3:
            raise ValueError("config must be 0 to 3")
        if config == 2:
            return torch.tanh(x) * self.scale + 1
        return torch.tanh(x) * self.scale

    def forward(self, x):
        return self.choose(x, config=0)
"""


@pytest.mark.slow
def test_tuning_verifies_each_value_in_one_process(folder):
    solution = solution_in(folder, CONFIGURED, "tuned.py")
    options = Options(folder / "model.py", solution, "cpu", budget=1.0, seed=1, policy=Policy(sandbox=False))
    (site,) = find_sites(solution)
    assert (site.function, site.value) == ("choose", 0)
    swept = sweep(options, [site], {}, Monitor(None))
    assert {row.value: row.state for row in swept.rows} == {0: "right", 1: "right", 2: "wrong", 3: "right"}
    assert swept.best[site.key] in (0, 1, 3)
    assert sum(row.chosen for row in swept.rows) == 1


class FakeBench:
    """Values 0 to 3 of every call; times by value, in milliseconds; `broken` gives another state than right."""

    def __init__(self, times, broken=()):
        self.times, self.broken, self.tried = times, dict(broken), []

    def verified(self, site, value, others):
        self.tried.append(value)
        if value not in self.times:
            return tune.Row(site.key, value, "refused", "config must be 0 to 3")
        return tune.Row(site.key, value, self.broken.get(value, "right"))


@pytest.fixture
def timed(monkeypatch):
    def time(bench, names, anchor, options, monitor):
        turns = {}
        for name in names:
            ms = bench.times[int(name.rpartition("=")[2])]
            turns[name] = [rounds.Turn(number, (ms, ms * 1.001, ms * 1.002), (), 0.0, 0.0, 0.0) for number in range(8)]
        return rounds.Sampled(turns, {}, rounds=8)

    monkeypatch.setattr(tune, "_time", time)


def swept_one(bench, values=(), current=0):
    site = Site("norm:3", "norm", 3, current, (3, 0), (3, 0), ", config=", "norm(x)")
    done = tune.Swept(start={"norm:3": current}, best={"norm:3": current})
    tune._sweep_one(bench, site, list(values), done, Options(None, None, "cpu"), None)
    return done


def test_the_fastest_right_value_is_chosen(timed):
    bench = FakeBench({0: 1.0, 1: 0.8, 2: 0.5, 3: 0.9}, {2: "wrong"})
    done = swept_one(bench)
    assert done.best == {"norm:3": 1}
    assert bench.tried == [0, 1, 2, 3, 4]
    assert [row.value for row in done.rows] == [0, 1, 2, 3]
    assert next(row for row in done.rows if row.value == 2).ms is None


def test_a_gain_within_the_clocks_resolution_changes_nothing(timed):
    assert swept_one(FakeBench({0: 1.0, 1: 0.995, 2: 1.2, 3: 1.0})).best == {"norm:3": 0}


def test_a_wrong_present_value_is_replaced(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 3.0, 2: 2.0}, {0: "wrong"}))
    assert done.best == {"norm:3": 2}


def test_a_given_grid_still_compares_with_the_present_value(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 0.8, 2: 0.5, 3: 0.9}), values=[3, 1])
    assert {row.value for row in done.rows} == {0, 1, 3}
    assert done.best == {"norm:3": 1}


def test_when_no_value_is_right_nothing_is_chosen(timed):
    done = swept_one(FakeBench({0: 1.0, 1: 1.0}, {0: "wrong", 1: "crashed"}))
    assert not any(row.chosen for row in done.rows)
