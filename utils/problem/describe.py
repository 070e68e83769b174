"""What a problem's model is made of, as plain data: arguments, weights and results with their shapes and dtypes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from utils.problem.checks.behaviour import parameters_of
from utils.problem.checks.estimate import followed
from utils.problem.problem import Problem, load_problem


def describe(path: Path) -> dict[str, Any]:
    """{"inputs": [...], "weights": [...], "outputs": structure, "sizes": [...]} of the problem file at `path`.

    A tensor is {"tensor": index, "name", "shape", "dtype"}; other values are {"value": repr, "name"}; containers are
    {"list" | "tuple": [...]} and {"dict": {key: ...}}. When the file has a small variant, "sizes" holds the shapes of
    both variants, so that a dimension which follows an input can be told from one that only happens to be equal.
    Nothing is allocated where shapes can be followed through fake tensors. Raises CannotTell.
    """
    problem = load_problem(path)
    full = _shapes(problem, small=False)
    small = _shapes(problem, small=True) if problem.has_small else None
    chosen = full or small or _real(problem)
    return {**chosen, "small": small}


def _shapes(problem: Problem, small: bool) -> dict[str, Any] | None:
    state = torch.get_rng_state()
    try:
        with followed(), torch.no_grad():
            return _described(problem, small)
    except Exception:
        return None
    finally:
        torch.set_rng_state(state)


def _real(problem: Problem) -> dict[str, Any]:
    with torch.no_grad():
        return _described(problem, problem.has_small)


def _described(problem: Problem, small: bool) -> dict[str, Any]:
    inputs = problem.inputs(small)
    model = problem.model(small).eval()
    outputs = model(*inputs)
    names = parameters_of(problem)
    counter = [0]
    return {
        "inputs": [
            {**_value(value, [0]), "name": names[i] if i < len(names) else f"input{i}"}
            for i, value in enumerate(inputs)
        ],
        "weights": [
            {**_value(value, [0]), "name": name} for name, value in [*model.named_parameters(), *model.named_buffers()]
        ],
        "outputs": _value(outputs, counter),
    }


def _value(value: Any, counter: list[int]) -> dict[str, Any]:
    if isinstance(value, torch.Tensor):
        counter[0] += 1
        return {"tensor": counter[0] - 1, "shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, (list, tuple)):
        return {"tuple" if isinstance(value, tuple) else "list": [_value(item, counter) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): _value(item, counter) for key, item in value.items()}}
    return {"value": repr(value), "type": type(value).__name__}
