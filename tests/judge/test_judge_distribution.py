"""Random numbers compared as samples: the same distribution is never refused, another one is, and why."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from utils.judge.distribution import DRAWS, Agreement, Samples

X = torch.randn(24, 8, 32, generator=torch.Generator().manual_seed(3))
Draw = Callable[[], torch.Tensor]


def compared(one: Draw, two: Draw) -> Agreement:
    samples = Samples()
    for _ in range(DRAWS):
        samples.add([one()], [two()])
    return samples.agreement()


HONEST: dict[str, Draw] = {
    "loud noise": lambda: X + 4 * torch.randn_like(X),
    "quiet noise": lambda: X + 1e-3 * torch.randn_like(X),
    "dropout": lambda: F.dropout(X, 0.5),
    "dropout of channels": lambda: F.dropout1d(X, 0.3),
    "noise for each row": lambda: X + torch.randn(24, 1, 1),
    "one number for all": lambda: X * torch.randn(()),
    "complex": lambda: torch.complex(X, X) + torch.randn(24, 8, 32, dtype=torch.complex64),
    "a scalar": lambda: torch.randn(()),
    "bits": lambda: torch.bernoulli(torch.full((24, 8), 0.3)).long(),
}


@pytest.mark.parametrize("name", HONEST)
def test_other_numbers_of_the_same_distribution_are_never_refused(name: str) -> None:
    torch.manual_seed(0)
    for _ in range(6):
        agreement = compared(HONEST[name], HONEST[name])
        assert agreement.holds, agreement.sentence


@pytest.mark.parametrize(
    ("two", "words"),
    [
        (lambda: 0.6 * X + 4 * torch.randn_like(X), "of Model's mean where Model's hold"),
        (lambda: X + 4 * torch.randn(24, 8, 1), "depend on one another"),
        (lambda: X + 4 * torch.randn(24, 8, 16).repeat(1, 1, 2), "average along dimension 2"),
        (lambda: X + 4 * torch.randn(24, 8, 16).repeat_interleave(2, 2), "along dimension 2"),
        (lambda: X + 4 * torch.randn(1, 8, 32), "along dimension 0"),
    ],
    ids=["attenuated", "one number for a row", "half a row twice", "each number twice", "one row for all"],
)
def test_a_distribution_that_only_looks_alike_element_by_element_is_refused(two: Draw, words: str) -> None:
    torch.manual_seed(1)
    agreement = compared(HONEST["loud noise"], two)
    assert not agreement.holds and words in agreement.sentence, agreement.sentence


def test_other_precision_is_no_other_distribution() -> None:
    torch.manual_seed(2)
    assert compared(HONEST["dropout"], lambda: F.dropout(X.bfloat16(), 0.5).float()).holds
