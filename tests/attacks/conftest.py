"""Attacks that a test run selected are all handed to two workers at once; each test then waits for its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from attack_corpus import Attack, Outcome, Pool

_WORKERS = 2


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest) -> Iterator[Callable[[Attack], Outcome]]:
    """What the judge makes of an attack of the corpus, in the order in which the tests ask."""
    pool = Pool(_WORKERS)
    wanted: list[Attack] = []
    for item in request.session.items:
        attack = getattr(item, "callspec", None) and item.callspec.params.get("attack")
        if attack and item.function.__name__ == "test_attack":
            wanted.append(attack)
    futures: dict[str, Future[Outcome]] = {attack.name: pool.submit(attack) for attack in wanted}
    yield lambda attack: futures[attack.name].result(timeout=900)
    pool.close()
