"""Every attack of the corpus is refused, for the right reason; every honest solution in it passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attack_corpus import SOLUTIONS, Attack, Outcome, corpus, missed

# What the judge does not see yet, each with what goes wrong. Strict: an attack that is refused must leave this list.
OPEN: dict[str, str] = {}


def _marked(attack: Attack) -> Any:
    marks = [pytest.mark.xfail(strict=True, reason=OPEN[attack.name])] if attack.name in OPEN else []
    return pytest.param(attack, id=attack.name, marks=marks)


@pytest.mark.parametrize("attack", [_marked(attack) for attack in corpus()])
def test_attack(attack: Attack, judged: Callable[[Attack], Outcome]) -> None:
    assert missed(attack, judged(attack)) == ""


def test_the_readme_names_every_file() -> None:
    text = (SOLUTIONS.parent / "README.md").read_text()
    missing = [path.stem for path in SOLUTIONS.glob("*.py") if f"`{path.stem}`" not in text]
    assert missing == []


def test_every_open_attack_is_in_the_corpus() -> None:
    assert set(OPEN) <= {attack.name for attack in corpus()}
