"""Trees of values: there and back, and every difference told by its path."""

from __future__ import annotations

import collections
import math
from typing import Any

import pytest
import torch

from utils.judge import structure

Pair = collections.namedtuple("Pair", ["left", "right"])


def described(value: Any) -> structure.Node:
    def leaf(tensor: torch.Tensor) -> structure.Node:
        dtype = str(tensor.dtype).removeprefix("torch.")
        return {
            "k": "tensor",
            "dtype": dtype,
            "size": list(tensor.shape),
            "stride": list(tensor.stride()),
            "device": str(tensor.device),
        }

    return structure.check(structure.encode(value, leaf))


def there_and_back(value: Any) -> Any:
    return structure.decode(described(value), lambda node: None)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -(2**80),
        1.5,
        -0.0,
        math.inf,
        -math.inf,
        "text",
        2 - 3j,
        torch.float16,
        torch.device("cpu"),
        torch.Size([2, 3]),
        [1, (2.0, None)],
        {"a": [1], 2: {"b": ()}},
        (),
        [],
    ],
)
def test_plain_values_survive(value: Any) -> None:
    back = there_and_back(value)
    assert back == value and type(back) is type(value)
    assert not isinstance(value, float) or math.copysign(1, back) == math.copysign(1, value)


def test_nan_survives() -> None:
    assert math.isnan(there_and_back(math.nan))


def test_named_tuples_keep_their_fields() -> None:
    back = there_and_back(Pair(1, [2]))
    assert (back.left, back.right) == (1, [2])


def test_a_strange_object_and_a_huge_int_are_named_not_carried() -> None:
    assert described(object())["type"] == "builtins.object"
    assert described(1 << 5000)["k"] == "other"


def test_paths_of_leaves() -> None:
    tree = described({"aux": (torch.zeros(2), 3), "y": [None]})
    assert [path for path, _ in structure.leaves(tree)] == ["out['aux'][0]", "out['aux'][1]", "out['y'][0]"]
    assert [path for path, _ in structure.tensors(tree)] == ["out['aux'][0]"]


T = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        (T, [T], "out is a list, the reference returns a tensor"),
        ((T, T), [T, T], "out is a list, the reference returns a tuple"),
        ((T, T), (T,), "out has 1 items, the reference returns 2"),
        ([T], [], "out has 0 items, the reference returns 1"),
        ({"a": T}, {"b": T}, "out lacks the key 'a'"),
        ({"a": T}, {"a": T, "b": T}, "out has the key 'b', which the reference does not return"),
        ({"aux": [T]}, {"aux": [T.double()]}, "out['aux'][0] has dtype float64, the reference has float32"),
        (T, T.reshape(6), "out has shape (6,), the reference has (2, 3)"),
        (torch.tensor(1.0), 1.0, "out is 1.0 (float), the reference returns a tensor"),
        (None, T, "out is a tensor, the reference returns None"),
        (3, 3.0, "out is 3.0 (float), the reference returns 3 (int)"),
    ],
)
def test_differences_are_told_with_their_path(expected: Any, actual: Any, told: str) -> None:
    found = structure.differences(described(expected), described(actual))
    assert found and found[0] == told


def test_equal_structures_have_no_differences() -> None:
    value = {"a": (T, None, 3), "b": [torch.tensor(True)]}
    assert structure.differences(described(value), described(value)) == []
    assert structure.differences(described(Pair(T, T)), described((T, T))) == []
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.long)
    assert (
        structure.differences(described(torch.return_types.max((values, indices))), described((values, indices))) == []
    )
