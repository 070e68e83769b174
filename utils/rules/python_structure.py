"""What the shape of Python code says on its own: top-level statements, attributes of self, annotated kinds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from utils.rules.python_values import (
    PLAIN,
    UNKNOWN,
    Class,
    Function,
    Instance,
    Many,
    Name,
    Plain,
    Tensor,
    TorchModule,
    Value,
)


def base_name(name: str) -> str:
    return name.split(".")[-1].rstrip("_")


def annotated(text: str) -> Value:
    lowered = text.lower()
    if "tensor" in lowered:
        if any(word in lowered for word in ("list", "tuple", "sequence", "iterable", "dict")):
            return Many((Tensor(),))
        return Tensor()
    if any(word in lowered for word in ("int", "float", "bool", "str", "size", "device", "dtype")):
        return PLAIN
    return UNKNOWN


def kind(value: Value) -> object:
    """A hashable stand-in of a value, coarse enough for recursion to end."""
    if isinstance(value, (Tensor, Name, TorchModule)):
        return value
    if isinstance(value, Plain):
        return ("plain", str(value.const)[:60] if value.known else "")
    if isinstance(value, Instance):
        return ("instance", id(value.cls))
    if isinstance(value, Function):
        return ("function", id(value.node))
    if isinstance(value, Many):
        return ("many", tuple(kind(item) for item in value.items[:4]))
    return type(value).__name__


def top_level(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file's top level; what stands under an if, try, with or loop there belongs to it."""
    for statement in statements:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for name in ("body", "orelse", "finalbody"):
                yield from top_level(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from top_level(handler.body)


def collect_attributes(cls: Class) -> None:
    """Every `self.name = ...`, register_buffer and register_parameter in the class's methods."""
    for method in cls.node.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if isinstance(method, ast.AnnAssign) and isinstance(method.target, ast.Name) and method.value is not None:
                cls.attributes.setdefault(method.target.id, []).append((method.value, None))
            continue
        me = method.args.args[0].arg if method.args.args else "self"
        function = Function(method, cls.file, cls.scope, cls)
        for node in ast.walk(method):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if (
                        isinstance(target, ast.Attribute)
                        and isinstance(target.value, ast.Name)
                        and target.value.id == me
                    ):
                        cls.attributes.setdefault(target.attr, []).append((node.value, function))
                    elif (
                        isinstance(target, ast.Subscript)
                        and _is_own_table(target.value, me)
                        and isinstance(target.slice, ast.Constant)
                        and isinstance(target.slice.value, str)
                    ):
                        cls.attributes.setdefault(target.slice.value, []).append((node.value, function))
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                target = node.target
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == me:
                    cls.attributes.setdefault(target.attr, []).append((node.value, function))
            elif isinstance(node, ast.Call) and (table := _updated(node, me)) is not None:
                for name, value in table:
                    cls.attributes.setdefault(name, []).append((value, function))
            elif isinstance(node, ast.Call) and (list_name := _appended_to(node, me)):
                cls.attributes.setdefault(list_name + "[]", []).append((node.args[-1], function))
            elif isinstance(node, ast.Call) and len(node.args) >= 2:
                called = node.func
                name = (
                    called.attr
                    if isinstance(called, ast.Attribute)
                    else called.id
                    if isinstance(called, ast.Name)
                    else ""
                )
                first = node.args[0]
                bound = not (isinstance(first, ast.Name) and first.id == me)
                offset = 1 if name == "setattr" or (name == "__setattr__" and not bound) else 0
                if (
                    name
                    in {
                        "register_buffer",
                        "register_parameter",
                        "add_module",
                        "register_module",
                        "setattr",
                        "__setattr__",
                    }
                    and len(node.args) > offset + 1
                ):
                    label = node.args[offset]
                    if isinstance(label, ast.Constant) and isinstance(label.value, str):
                        cls.attributes.setdefault(label.value, []).append((node.args[offset + 1], function))


def _appended_to(node: ast.Call, me: str) -> str | None:
    """The `name` of `self.name.append(...)` and its like."""
    function = node.func
    if (
        isinstance(function, ast.Attribute)
        and function.attr in {"append", "extend", "insert", "add_module"}
        and node.args
        and isinstance(function.value, ast.Attribute)
        and isinstance(function.value.value, ast.Name)
        and function.value.value.id == me
    ):
        return function.value.attr
    return None


def _is_own_table(node: ast.expr, me: str) -> bool:
    """Whether `node` is `self.__dict__` or `vars(self)`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return isinstance(node.value, ast.Name) and node.value.id == me
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
        return isinstance(node.args[0], ast.Name) and node.args[0].id == me
    return False


def _updated(node: ast.Call, me: str) -> list[tuple[str, ast.expr]] | None:
    """The entries of `self.__dict__.update(...)`; None for other calls."""
    function = node.func
    if not (isinstance(function, ast.Attribute) and function.attr == "update" and _is_own_table(function.value, me)):
        return None
    found = [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
    for argument in node.args:
        if isinstance(argument, ast.Dict):
            for key, value in zip(argument.keys, argument.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    found.append((key.value, value))
    return found
