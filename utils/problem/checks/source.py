"""What the text of a problem file says without being run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from utils.problem.checks.finding import FAIL, PASS, WARN, Finding

_RANDOM_SIZES = {
    "randint",
    "random",
    "randrange",
    "choice",
    "uniform",
    "sample",
    "rand",
    "randn",
    "normalvariate",
    "gauss",
}
_FACTORIES = {"rand", "randn", "zeros", "ones", "empty", "full", "randint", "arange", "linspace", "eye"}


@dataclass(frozen=True)
class Source:
    """A problem file as a syntax tree."""

    path: Path
    tree: ast.Module

    def function(self, name: str) -> ast.FunctionDef | None:
        return next((n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == name), None)

    def model(self) -> ast.ClassDef | None:
        return next((n for n in self.tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)

    def modules(self) -> list[ast.ClassDef]:
        """Top-level classes that derive from something called Module."""
        return [
            node
            for node in self.tree.body
            if isinstance(node, ast.ClassDef)
            and any(ast.unparse(base).split(".")[-1] == "Module" for base in node.bases)
        ]

    def method(self, name: str) -> ast.FunctionDef | None:
        model = self.model()
        if model is None:
            return None
        return next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == name), None)


def source_findings(source: Source) -> Iterator[Finding]:
    """Checks that need only the text. A later, dynamic answer to the same check replaces these."""
    yield Finding("python", PASS, "the file is valid Python")
    yield from _model(source)
    yield from _functions(source)
    placed = device_calls(source)
    if placed:
        node, said = placed[0]
        yield Finding(
            "cpu-tensors",
            FAIL,
            f"get_inputs() puts a tensor on a device: {said}",
            node.lineno,
            "leave it on the CPU; the workbench moves inputs (--fix does this)",
        )
    yield from _shapes(source)
    yield from _constructor_arguments(source)


def _model(source: Source) -> Iterator[Finding]:
    model = source.model()
    if model is None:
        # A Model made some other way (imported, assigned) is for the run to judge.
        if any(
            isinstance(n, ast.Name) and n.id == "Model" and isinstance(n.ctx, ast.Store) for n in ast.walk(source.tree)
        ):
            return
        if any(
            isinstance(n, ast.ImportFrom) and any((a.asname or a.name) == "Model" for a in n.names)
            for n in source.tree.body
        ):
            return
        others = source.modules()
        if len(others) == 1:
            only = others[0]
            yield Finding(
                "model-class",
                FAIL,
                f"the module is named {only.name}; it must be named exactly Model",
                only.lineno,
                f"rename {only.name} to Model (--fix does this)",
            )
        elif others:
            names = ", ".join(node.name for node in others)
            yield Finding(
                "model-class",
                FAIL,
                f"no class is named Model; there are {names}",
                others[-1].lineno,
                "name the one to optimise exactly Model",
            )
        else:
            yield Finding(
                "model-class",
                FAIL,
                "there is no class named Model",
                None,
                "define class Model(torch.nn.Module) with a forward",
            )
        return
    if not model.bases:
        yield Finding(
            "model-class",
            FAIL,
            "Model does not extend torch.nn.Module",
            model.lineno,
            "write class Model(torch.nn.Module):",
        )


def _functions(source: Source) -> Iterator[Finding]:
    if source.function("get_inputs") is None and not _assigned(source.tree, "get_inputs"):
        yield Finding(
            "get-inputs",
            FAIL,
            "there is no function get_inputs()",
            None,
            "define get_inputs(), returning forward's arguments as a list of CPU tensors",
        )
    if source.function("get_init_inputs") is None and not _assigned(source.tree, "get_init_inputs"):
        needs = list(_required(source.method("__init__")))
        if needs:
            yield Finding(
                "get-init-inputs",
                FAIL,
                f"there is no function get_init_inputs(), but Model's constructor needs {', '.join(needs)}",
                None,
                "define get_init_inputs(), returning those arguments as a list",
            )
        else:
            yield Finding(
                "get-init-inputs",
                WARN,
                "there is no function get_init_inputs(); no arguments are assumed",
                None,
                "add: def get_init_inputs(): return [] (--fix does this)",
            )


def _shapes(source: Source) -> Iterator[Finding]:
    """Sizes drawn at random, in get_inputs or in the module's constants."""
    for name in ("get_inputs", "get_init_inputs", "get_small_inputs"):
        function = source.function(name)
        if function is None:
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and (said := _random_size(node)):
                yield Finding(
                    "fixed-shapes",
                    FAIL,
                    f"{name}() draws a size at random: {said}",
                    node.lineno,
                    "use a constant for every dimension",
                )
                return
    for statement in source.tree.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Call)
            and (said := _random_size(statement.value))
        ):
            yield Finding(
                "fixed-shapes",
                FAIL,
                f"a size is drawn at random when the file is imported: {said}",
                statement.lineno,
                "use a constant for every dimension",
            )
            return


def _random_size(node: ast.Call) -> str | None:
    """A call that gives a random Python number: random.randint(...), torch.randint(...).item() and the like."""
    said = ast.unparse(node.func)
    parts = said.split(".")
    if parts[-1] == "item" and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        inner = ast.unparse(node.func.value.func).split(".")
        return ast.unparse(node) if inner[-1] in {"randint"} else None
    if parts[0] in {"random", "secrets"} and len(parts) == 2 and parts[1] in _RANDOM_SIZES:
        return ast.unparse(node)
    if (
        parts[0] in {"np", "numpy"}
        and parts[1:2] == ["random"]
        and parts[-1] in {"randint", "choice", "integers"}
        and not _has_size(node)
    ):
        return ast.unparse(node)
    return None


def _has_size(node: ast.Call) -> bool:
    return len(node.args) > 2 or any(keyword.arg == "size" for keyword in node.keywords)


def device_calls(source: Source) -> list[tuple[ast.Call, str]]:
    """Calls in get_inputs (and its small variant) that put tensors on a GPU: .cuda(), .to("cuda"), device="cuda"."""
    found = []
    for name in ("get_inputs", "get_small_inputs"):
        function = source.function(name)
        for node in ast.walk(function) if function is not None else []:
            if not isinstance(node, ast.Call):
                continue
            if (
                (
                    isinstance(node.func, ast.Attribute)
                    and node.func.attr == "cuda"
                    and ast.unparse(node.func.value) != "torch"
                )
                or (
                    isinstance(node.func, ast.Attribute)
                    and node.func.attr == "to"
                    and node.args
                    and names_gpu(node.args[0], source)
                )
                or any(keyword.arg == "device" and names_gpu(keyword.value, source) for keyword in node.keywords)
            ):
                found.append((node, ast.unparse(node)))
    return sorted(found, key=lambda pair: (pair[0].lineno, pair[0].col_offset))


def names_gpu(node: ast.expr, source: Source) -> bool:
    """Whether an expression plainly names a GPU: "cuda:0", torch.device("cuda"), or a constant that holds one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and node.value.split(":")[0] in {"cuda", "hip", "xpu", "mps"}
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "device" and node.args:
        return names_gpu(node.args[0], source)
    if isinstance(node, ast.IfExp):
        return names_gpu(node.body, source) or names_gpu(node.orelse, source)
    if isinstance(node, ast.Name):
        for statement in ast.walk(source.tree):
            if (
                isinstance(statement, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets)
                and not isinstance(statement.value, ast.Name)
                and names_gpu(statement.value, source)
            ):
                return True
    return False


def _constructor_arguments(source: Source) -> Iterator[Finding]:
    """Constructor arguments that nothing reads: a solution that honours them would differ for nothing."""
    init = source.method("__init__")
    if init is None:
        if source.model() is not None:
            yield Finding("constructor-arguments", PASS, "the constructor takes no arguments")
        return
    read = {node.id for node in ast.walk(init) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    unused = [a for a in [*init.args.args[1:], *init.args.kwonlyargs] if a.arg not in read]
    if unused:
        names = ", ".join(argument.arg for argument in unused)
        yield Finding(
            "constructor-arguments",
            WARN,
            f"the constructor ignores {names}",
            unused[0].lineno,
            "keep it in ModelNew's signature and ignore it there too, or remove it from the problem",
        )
    else:
        yield Finding("constructor-arguments", PASS, "every constructor argument is used")


def _required(init: ast.FunctionDef | None) -> list[str]:
    if init is None:
        return []
    names = [argument.arg for argument in init.args.args[1:]]
    return names[: len(names) - len(init.args.defaults)]


def _assigned(tree: ast.Module, name: str) -> bool:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return True
        if isinstance(node, (ast.ImportFrom, ast.Import)) and any((a.asname or a.name) == name for a in node.names):
            return True
    return False


def implicit_float_line(source: Source) -> int | None:
    """The line of the first factory in get_inputs with no dtype."""
    function = source.function("get_inputs")
    for node in ast.walk(function) if function is not None else []:
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).split(".")[-1] in _FACTORIES
            and not any(k.arg == "dtype" for k in node.keywords)
        ):
            return node.lineno
    return None
