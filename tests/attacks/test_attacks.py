"""Every attack of the corpus is refused, for the right reason; every honest solution in it passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attack_corpus import SOLUTIONS, Attack, Outcome, corpus, missed

# What the judge does not see yet, each with what goes wrong. Strict: an attack that is refused must leave this list.
OPEN = {
    "honest_key_order": "tensors are copied in the solution's order and read in the reference's",
    "honest_key_order_same_shapes": "the same: a right answer is accused of wrong values",
    "litter_deep_folders": "RecursionError while the stage is removed hides the verdict",
    "memory_hog_in_files": "memory of memfd and tmpfs files is not counted",
    "nothing_in_place": "where Model only changes its input, nothing is compared",
    "out_of_memory_claimed": "the solution's word alone makes the judge repeat with fewer checks",
    "random_input_ignored": "the test of distributions lets a lost signal pass under louder noise",
    "random_memo_by_pointer": "where numbers are random, calls 2 and 3 are excused unseen",
    "result_numpy_zeros": "values of types without a comparison pass unseen",
    "result_other_tuple_keys": "keys are compared as they are shown, and tuples are shown by their length",
    "result_without_tensors": "values of types without a comparison pass unseen",
    "rule_dispatch_modes_off": "neither reading nor recording sees vars(torch)[...] with dispatch modes disabled",
    "rule_recorder_replaced": "the recorder is found through a traceback and replaced",
    "wrong_buffers_hidden": "a buffer that the solution hides after the calls is only noted",
    "wrong_in_place": "inputs that both sides change are not compared",
}


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
