"""A problem file: the module to make faster, and what it is called with.

    class Model(nn.Module)            the operation; its forward defines the right answer
    get_inputs() -> list              what forward is called with, CPU tensors and plain values, in order
    get_init_inputs() -> list         what the constructor is called with, in order
    get_small_inputs() -> list        optional: the same operation at a size a CPU runs in about a second
    get_small_init_inputs() -> list   optional: the constructor arguments that go with it

`load_problem` runs the file in this process, so only a process that may trust it should call it; utils.check reads and
runs a file of unknown quality in a child. docs/formats.md describes the format for its users.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from utils.present.outcome import CannotTell

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Problem:
    """A problem file that was run. The callables are the file's own; `inputs` and `init_inputs` give settled lists."""

    path: Path
    module: ModuleType
    Model: type[nn.Module]
    get_inputs: Callable[[], Any]
    get_init_inputs: Callable[[], Any]
    get_small_inputs: Callable[[], Any] | None = None
    get_small_init_inputs: Callable[[], Any] | None = None

    def inputs(self, small: bool = False) -> list[Any]:
        """A fresh draw of forward's positional arguments. `small` uses the small variant where the file has one.

        Raises CannotTell when the function fails or returns something that is not a list in an unambiguous way.
        """
        draw = self.get_small_inputs if small and self.get_small_inputs else self.get_inputs
        value, _ = settle_inputs(called(draw, self.path), name_of(draw))
        return value

    def init_inputs(self, small: bool = False) -> list[Any]:
        """The constructor's positional arguments; as `inputs`."""
        draw = self.get_small_init_inputs if small and self.get_small_init_inputs else self.get_init_inputs
        value, _ = settle_init_inputs(called(draw, self.path), name_of(draw))
        return value

    def model(self, small: bool = False) -> nn.Module:
        """A fresh Model as its constructor leaves it (train mode, CPU). Raises CannotTell if that fails."""
        arguments = self.init_inputs(small)
        try:
            return self.Model(*arguments)
        except Exception as error:
            raise CannotTell(f"Model(*get_init_inputs()) failed: {failure(error, self.path)}") from error

    @property
    def has_small(self) -> bool:
        return self.get_small_inputs is not None


def load_problem(path: str | Path) -> Problem:
    """Runs the problem file at `path` in this process.

    Raises CannotTell, with one sentence, when there is no such file, when it does not run, or when Model or
    get_inputs is missing. A missing get_init_inputs stands for no arguments (the check warns of it).
    """
    path = Path(path).resolve()
    module = run_file(path, "problem")
    model = getattr(module, "Model", None)
    if model is None:
        raise CannotTell(f"{path.name} defines no class named Model; rename the module to optimise to exactly Model")
    if not isinstance(model, type) or not _is_module(model):
        raise CannotTell(f"Model in {path.name} is not a subclass of torch.nn.Module")
    get_inputs = getattr(module, "get_inputs", None)
    if not callable(get_inputs):
        raise CannotTell(f"{path.name} defines no function get_inputs(); it must return forward's arguments as a list")
    optional = {}
    for name in ("get_init_inputs", "get_small_inputs", "get_small_init_inputs"):
        optional[name] = getattr(module, name, None)
        if optional[name] is not None and not callable(optional[name]):
            raise CannotTell(f"{name} in {path.name} is not a function")
    return Problem(
        path,
        module,
        model,
        get_inputs,
        optional["get_init_inputs"] or _no_arguments,
        optional["get_small_inputs"],
        optional["get_small_init_inputs"],
    )


def run_file(path: Path, prefix: str) -> ModuleType:
    """The module that running the Python file `path` gives, under a name of its own in sys.modules.

    The file is compiled from its source, so nothing is written beside it. Raises CannotTell when it cannot be read
    or does not run; the sentence carries the line in the file.
    """
    try:
        source = path.read_bytes()
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from None
    name = f"{prefix}_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(path)
    # dataclasses, pickling and torch.jit look a class's module up here.
    sys.modules[name] = module
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        raise CannotTell(f"{path.name} does not run: {failure(error, path)}") from error
    except SystemExit as error:
        del sys.modules[name]
        raise CannotTell(f"{path.name} ends the interpreter (SystemExit({error.code})) when it is imported") from error
    return module


def settle_inputs(value: Any, name: str = "get_inputs") -> tuple[list[Any], str | None]:
    """What get_inputs returned as a list, and how to mend it where it was not one.

    A list is taken as it is. A tuple and a lone tensor have one meaning only, so they are used, and the second item
    says what to write instead. Everything else is ambiguous and raises CannotTell.
    """
    import torch

    if type(value) is list:
        return value, None
    if isinstance(value, (list, tuple)):
        return list(value), f"{name}() returned a {type(value).__name__}; return a list: [{_sketch(value)}]"
    if isinstance(value, torch.Tensor):
        return [value], f"{name}() returned a lone tensor; return a list of one: [x]"
    raise CannotTell(_wrong_return(name, value, "forward's positional arguments"))


def settle_init_inputs(value: Any, name: str = "get_init_inputs") -> tuple[list[Any], str | None]:
    """The same for get_init_inputs: a lone number, string or tensor is the only argument, None means no arguments."""
    import torch

    if type(value) is list:
        return value, None
    if isinstance(value, (list, tuple)):
        return list(value), f"{name}() returned a {type(value).__name__}; return a list: [{_sketch(value)}]"
    if value is None:
        return [], f"{name}() returned None; return [] when the constructor takes no arguments"
    if isinstance(value, (bool, int, float, str, torch.Tensor)):
        return [value], f"{name}() returned a lone {type(value).__name__}; return a list of one: [{_sketch([value])}]"
    raise CannotTell(_wrong_return(name, value, "the constructor's positional arguments"))


def called(function: Callable[[], Any], path: Path) -> Any:
    """`function()`, with an error of the user's turned into one sentence."""
    try:
        return function()
    except Exception as error:
        raise CannotTell(f"{name_of(function)}() failed: {failure(error, path)}") from error


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "get_inputs")


def failure(error: BaseException, path: Path) -> str:
    """An exception in one line: type, message, and the last line of `path` on its way."""
    if isinstance(error, CannotTell):
        return str(error)
    message = " ".join(str(error).split()) or "no message"
    if len(message) > 300:
        message = message[:297] + "..."
    line = failing_line(error, path)
    where = f" ({path.name}:{line})" if line else ""
    return f"{type(error).__name__}: {message}{where}"


def failing_line(error: BaseException, path: Path) -> int | None:
    """The line of `path` at which `error` last passed, or None when it never was in that file."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    if isinstance(error, CannotTell) and error.__cause__ is not None:
        return failing_line(error.__cause__, path)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def _wrong_return(name: str, value: Any, what: str) -> str:
    said = f"{name}() must return a list of {what}, got {type(value).__name__}"
    if isinstance(value, Mapping):
        return said + "; list the values in the order of the parameters"
    if hasattr(value, "__next__"):
        return said + "; wrap it: return list(...)"
    if value is None:
        return said + "; is the return statement missing?"
    return said


def _sketch(values: Any) -> str:
    names = [type(value).__name__.lower() if hasattr(value, "shape") else repr(value) for value in values]
    text = ", ".join(names)
    return text if len(text) <= 60 else text[:57] + "..."


def _no_arguments() -> list[Any]:
    return []


def _is_module(cls: type) -> bool:
    from torch import nn

    return issubclass(cls, nn.Module)
