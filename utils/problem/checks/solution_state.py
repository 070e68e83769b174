"""Whether ModelNew takes Model's weights: both are constructed, and the one's state_dict is loaded into the other.

Runs in the child. No kernel is needed for it: the built extension is stood in for by one whose functions refuse to be
called, so the check works before anything is compiled and without a GPU.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from utils.present.outcome import CannotTell
from utils.problem.checks.finding import FAIL, PASS, SKIP, Finding
from utils.problem.problem import Problem, failing_line, failure, load_problem, run_file


class KernelCalled(RuntimeError):
    """A stand-in was called: the constructor runs kernels, which only a built module can."""


class _StandIn(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*arguments: Any, **keywords: Any) -> Any:
            raise KernelCalled(f"{self.__name__}.{name} is called while ModelNew is constructed")

        return refuse


def state_finding(problem_path: Path, solution_path: Path) -> Finding:
    """The finding `state-dict`."""
    try:
        problem = load_problem(problem_path)
    except CannotTell as error:
        return Finding("state-dict", SKIP, f"not tried: {error}")
    _stand_in()
    if str(solution_path.parent) not in sys.path:
        sys.path.append(str(solution_path.parent))
    try:
        module = run_file(solution_path, "solution")
    except CannotTell as error:
        cause = error.__cause__
        status = SKIP if isinstance(cause, (ImportError, KernelCalled)) or "CUDA" in str(error) else FAIL
        return Finding(
            "state-dict",
            status,
            str(error),
            failing_line(error, solution_path),
            "make the file run" if status == FAIL else None,
        )
    new = getattr(module, "ModelNew", None)
    if not (isinstance(new, type) and issubclass(new, torch.nn.Module)):
        return Finding("state-dict", SKIP, "not tried: there is no ModelNew")
    try:
        expected, got = _constructed(problem, new)
    except KernelCalled as error:
        return Finding("state-dict", SKIP, f"not tried: {error}; verification will")
    except Exception as error:
        line = failing_line(error, solution_path)
        if "CUDA" in str(error) or "NVIDIA" in str(error):
            return Finding(
                "state-dict", SKIP, f"not tried: the constructor needs a GPU ({failure(error, solution_path)})", line
            )
        return Finding(
            "state-dict",
            FAIL,
            f"ModelNew(*get_init_inputs()) fails: {failure(error, solution_path)}",
            line,
            "give ModelNew the constructor of Model",
        )
    return _compared(expected, got)


def _stand_in() -> None:
    import torch.utils.cpp_extension as builder

    sys.modules["cuda_extension"] = _StandIn("cuda_extension")
    for name in ("load_inline", "load"):
        setattr(builder, name, lambda *arguments, **keywords: _StandIn(str(keywords.get("name", "extension"))))


def _constructed(problem: Problem, new: type) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Model and ModelNew, without memory behind their weights where that works."""
    arguments = problem.init_inputs(small=True)
    try:
        with torch.device("meta"):
            return problem.Model(*arguments), new(*arguments)
    except KernelCalled:
        raise
    except Exception:
        return problem.Model(*arguments), new(*arguments)


def _compared(expected: torch.nn.Module, got: torch.nn.Module) -> Finding:
    state = expected.state_dict()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got.load_state_dict(state, strict=True)
    except Exception as error:
        theirs = got.state_dict()
        missing = [name for name in state if name not in theirs]
        extra = [name for name in theirs if name not in state]
        shapes = [
            f"{name} is {list(theirs[name].shape)} instead of {list(state[name].shape)}"
            for name in state
            if name in theirs and theirs[name].shape != state[name].shape
        ]
        parts = []
        if missing:
            parts.append(f"ModelNew lacks {', '.join(missing)}")
        if extra:
            parts.append(f"it has {', '.join(extra)} that Model has not")
        parts += shapes
        said = "; ".join(parts) or " ".join(str(error).split())[:200]
        return Finding(
            "state-dict",
            FAIL,
            said,
            None,
            "keep the names and shapes of Model's parameters and buffers",
            {"missing": missing, "extra": extra},
        )
    return Finding("state-dict", PASS, f"Model's state_dict ({len(state)} entries) loads into ModelNew")
