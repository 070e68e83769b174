"""What reading Python code can know of a value without running it.

The reader (python_reading.py) evaluates expressions to these. Everything it cannot follow is UNKNOWN, which no rule
accuses: the dispatched operators recorded at run time are there for what reading misses.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from utils.rules.torch_names import COMPUTE, CREATE, META, MOVE, VIEW


class Value:
    """Any value."""


@dataclass(frozen=True)
class Unknown(Value):
    pass


@dataclass(frozen=True)
class Plain(Value):
    """Not a tensor: a number, a shape, a dtype, a string. `const` is its value where the text gives it."""

    const: Any = None
    known: bool = False


@dataclass(frozen=True)
class Tensor(Value):
    """A tensor. `weight`: one of the module's own parameters or buffers; `turned`: a view that permutes memory."""

    weight: bool = False
    turned: bool = False


@dataclass(frozen=True)
class Name(Value):
    """Something imported, by its full dotted name: `torch.nn.functional.relu`, `cuda_extension.op`."""

    path: str


@dataclass(frozen=True)
class Builtin(Value):
    name: str


@dataclass(frozen=True)
class Method(Value):
    """A bound method not yet called."""

    owner: Value
    name: str


@dataclass(frozen=True, eq=False)
class Function(Value):
    """A function of the solution's own.

    scope is what its free names mean, owner the class that defines it, me the object it is bound to.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    file: PythonFile
    scope: Scope
    owner: Class | None = None
    me: Instance | None = None


@dataclass(frozen=True, eq=False)
class Class(Value):
    node: ast.ClassDef
    file: PythonFile
    scope: Scope
    attributes: dict[str, list[tuple[ast.expr, Function | None]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance(Value):
    cls: Class


@dataclass(frozen=True)
class TorchModule(Value):
    """An instance of a module of torch.nn; `path` is the class."""

    path: str


@dataclass(frozen=True)
class LocalModule(Value):
    file: PythonFile


@dataclass(frozen=True)
class TritonKernel(Value):
    pass


@dataclass(frozen=True)
class Many(Value):
    """A list, tuple, set or dict whose members are known."""

    items: tuple[Value, ...]


UNKNOWN = Unknown()
PLAIN = Plain()


@dataclass(eq=False)
class Scope:
    """Names of one function or module; a lookup that fails goes on in `outer`."""

    outer: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)

    def get(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


@dataclass(eq=False)
class PythonFile:
    """One source file of the solution and its top-level names."""

    path: FilePath
    tree: ast.Module
    scope: Scope = field(default_factory=Scope)
    # Every way a top-level name is bound, in order: a statement, or the expression it gets.
    bindings: dict[str, list[ast.AST]] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """Something a rule may care about.

    kind   torch (mentioned or called), call (outside forward), operator, index, write, layout, cast, module, cpu,
           hidden, inherit
    name   the operator or function, `matmul` or `torch.nn.Linear`
    """

    kind: str
    name: str
    file: FilePath
    line: int
    text: str


# torch namespaces that hold compute and nothing else.
_COMPUTE_SPACES = {
    "linalg",
    "fft",
    "special",
    "sparse",
    "signal",
    "masked",
    "func",
    "nested",
    "_refs",
    "_prims",
    "_decomp",
    "_VF",
}
_OPS_OF_TORCH = {
    "aten",
    "prims",
    "inductor",
    "quantized",
    "quantized_decomposed",
    "torchvision",
    "mkldnn",
    "onednn",
    "xformers",
    "flash_attn",
}
_PRIVATE_BUT_PLAIN = {
    "_C",
    "_dynamo",
    "_inductor",
    "_utils",
    "_check",
    "_assert",
    "_guards",
    "_subclasses",
    "_jit_internal",
    "_logging",
}
# Tensor methods whose names, under torch itself, are dtypes.
_DTYPES = {"half", "float", "double", "bfloat16", "int", "long", "short", "bool", "cfloat", "cdouble", "chalf"}
# Classes of torch.nn that compute nothing themselves.
CONTAINERS = {
    "Module",
    "Parameter",
    "Buffer",
    "ParameterList",
    "ParameterDict",
    "ModuleList",
    "ModuleDict",
    "Identity",
    "UninitializedParameter",
}

FORWARD_HOOKS = {"register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook"}
WEIGHT_HOOKS = {
    "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "_register_load_state_dict_pre_hook",
    "register_state_dict_pre_hook",
    "register_buffer_registration_hook",
    "register_module_parameter_registration_hook",
    "register_parametrization",
}

_BINARY = "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift"
ARITHMETIC = frozenset(f"__{prefix}{name}__" for name in _BINARY.split() for prefix in ("", "r", "i")) | {
    "__neg__", "__invert__", "__abs__", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__", "__setitem__",
}  # fmt: skip


def base(name: str) -> str:
    """An operator's name without the underscore of its in-place variant."""
    return name.rstrip("_") if not name.startswith("__") else name


def is_compute(name: str) -> bool:
    """Whether a function or tensor method of torch of this name computes."""
    if name in ARITHMETIC:
        return True
    if name in CREATE or name in VIEW or name in META or name in MOVE:
        return False
    return base(name) in COMPUTE


def torch_compute(path: str) -> str | None:
    """The operator that the dotted name `path` stands for, when it is compute of torch's; None otherwise."""
    parts = path.split(".")
    if parts[0] != "torch" or len(parts) < 2:
        return None
    head, rest = parts[1], parts[2:]
    if head == "nn":
        if len(rest) >= 2 and rest[0] == "functional":
            return rest[1]
        return rest[1] if len(rest) == 2 and rest[0] == "init" else None
    if head == "ops":
        return rest[1] if len(rest) >= 2 and rest[0] in _OPS_OF_TORCH else None
    if head == "_C":
        return (
            rest[1]
            if len(rest) >= 2 and rest[0] in {"_nn", "_VariableFunctions", "_linalg", "_fft", "_special", "TensorBase"}
            else None
        )
    if head in _COMPUTE_SPACES:
        return rest[0] if rest else None
    if head == "Tensor":
        return rest[0] if rest and is_compute(rest[0]) else None
    if rest:
        return None
    if head.startswith("_") and not head.startswith("__"):
        return None if head in _PRIVATE_BUT_PLAIN else head
    return head if head not in _DTYPES and is_compute(head) else None


def torch_module_class(path: str) -> bool:
    """Whether `path` names a class of torch.nn whose forward computes."""
    parts = path.split(".")
    if parts[:2] != ["torch", "nn"] or len(parts) < 3:
        return False
    if len(parts) > 3 and parts[2] in {"functional", "init", "utils", "parameter", "parallel"}:
        return False
    last = parts[-1]
    return last[:1].isupper() and last not in CONTAINERS
