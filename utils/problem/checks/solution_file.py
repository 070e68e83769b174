"""Checks of a solution that its text answers: the class, its signatures, its layout."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.checks.finding import FAIL, PASS, WARN, Finding
from utils.problem.solution import Solution, parse

SOLUTION_CHECKS = {
    "layout": "one of the layouts: cuda_extension workspace, load_inline or Triton file",
    "solution-class": "a class named exactly ModelNew with a forward",
    "constructor-signature": "the constructor takes what Model's takes",
    "forward-signature": "forward takes what Model's takes",
    "state-dict": "Model's state_dict loads into ModelNew",
}
_LAYOUTS = {
    "extension": "model_new.py with kernels/ (cuda_extension)",
    "load_inline": "one file with load_inline",
    "triton": "one file with Triton kernels",
}


def solution_findings(solution: Solution, problem: Path | None) -> Iterator[Finding]:
    """layout, solution-class and the two signatures."""
    tree = parse(solution.path)
    if solution.kind == "python":
        yield Finding(
            "layout",
            WARN,
            f"{solution.path.name} uses no kernels: neither cuda_extension, load_inline nor Triton",
            None,
            "import cuda_extension and call your kernels in forward",
        )
    else:
        yield Finding("layout", PASS, _LAYOUTS[solution.kind])
    new = _class(tree, "ModelNew")
    if new is None:
        others = [
            n
            for n in tree.body
            if isinstance(n, ast.ClassDef) and any(ast.unparse(b).split(".")[-1] == "Module" for b in n.bases)
        ]
        where = others[-1].lineno if others else None
        said = (
            f"no class is named ModelNew; there is {', '.join(n.name for n in others)}"
            if others
            else "there is no class named ModelNew"
        )
        yield Finding("solution-class", FAIL, said, where, "name the optimised module exactly ModelNew")
        return
    if not new.bases:
        yield Finding(
            "solution-class",
            FAIL,
            "ModelNew does not extend torch.nn.Module",
            new.lineno,
            "write class ModelNew(torch.nn.Module):",
        )
        return
    forward = _method(new, "forward", tree)
    if forward is None and not _inherits_forward(new, tree):
        yield Finding(
            "solution-class", FAIL, "ModelNew has no forward", new.lineno, "define forward with Model's parameters"
        )
        return
    yield Finding("solution-class", PASS, "class ModelNew with a forward")
    if problem is None:
        return
    try:
        reference = parse(problem)
    except CannotTell:
        return
    model = _class(reference, "Model")
    if model is None:
        return
    for check, name in (("constructor-signature", "__init__"), ("forward-signature", "forward")):
        mine, theirs = _method(new, name, tree), _method(model, name, reference)
        yield _signature(check, name, mine, theirs, new)


def _signature(
    check: str, name: str, mine: ast.FunctionDef | None, theirs: ast.FunctionDef | None, new: ast.ClassDef
) -> Finding:
    what = "the constructor" if name == "__init__" else "forward"
    a, b = _Parameters(theirs), _Parameters(mine)
    line = mine.lineno if mine is not None else new.lineno
    mend = f"write def {name}({a.said()})"
    if b.rest and len(b.names) <= len(a.names):
        return Finding(check, WARN, f"{what} takes *{b.rest} where Model's takes {a.said()}", line, mend)
    if len(b.names) < len(a.names):
        return Finding(check, FAIL, f"{what} takes ({b.said()}), Model's takes ({a.said()})", line, mend)
    extra = b.names[len(a.names) :]
    if any(name not in b.optional for name in extra):
        return Finding(check, FAIL, f"{what} needs {', '.join(extra)}, which Model's does not have", line, mend)
    lost = [
        mine_name
        for their_name, mine_name in zip(a.names, b.names, strict=False)
        if their_name in a.optional and mine_name not in b.optional
    ]
    if lost:
        return Finding(check, FAIL, f"{what} needs {', '.join(lost)}, which Model's gives a default", line, mend)
    if sorted(b.keyword_only) != sorted(a.keyword_only):
        return Finding(check, FAIL, f"{what} takes ({b.said()}), Model's takes ({a.said()})", line, mend)
    if sorted(a.names) == sorted(b.names) and a.names != b.names:
        return Finding(check, FAIL, f"{what} takes ({b.said()}) in another order than Model's ({a.said()})", line, mend)
    if extra:
        return Finding(check, WARN, f"{what} takes {', '.join(extra)} besides Model's parameters", line, mend)
    if a.names != b.names:
        return Finding(
            check,
            WARN,
            f"{what} takes the same number of parameters under other names: ({b.said()}) for ({a.said()})",
            line,
            mend,
        )
    different = [name for name in a.names if a.optional.get(name) != b.optional.get(name)]
    if different:
        return Finding(check, WARN, f"{what} gives {', '.join(different)} another default than Model's", line, mend)
    return Finding(check, PASS, f"{what} takes what Model's takes: ({a.said()})", line)


class _Parameters:
    """The parameters of a method after self, by name, with the text of their defaults."""

    def __init__(self, function: ast.FunctionDef | None) -> None:
        self.names: list[str] = []
        self.optional: dict[str, str] = {}
        self.keyword_only: list[str] = []
        self.rest: str | None = None
        if function is None:
            return
        spec = function.args
        everything = [argument.arg for argument in [*spec.posonlyargs, *spec.args]]
        for name, default in zip(reversed(everything), reversed(spec.defaults), strict=False):
            self.optional[name] = ast.unparse(default)
        self.names = everything[1:]
        self.keyword_only = [argument.arg for argument in spec.kwonlyargs]
        self.rest = spec.vararg.arg if spec.vararg else None

    def said(self) -> str:
        parts = [f"{name}={self.optional[name]}" if name in self.optional else name for name in self.names]
        if self.rest:
            parts.append("*" + self.rest)
        elif self.keyword_only:
            parts.append("*")
        return ", ".join(["self", *parts, *self.keyword_only])


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    return next((n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name), None)


def _method(cls: ast.ClassDef, name: str, tree: ast.Module, depth: int = 0) -> ast.FunctionDef | None:
    """The method, looked for in the bases this file defines as well."""
    for node in cls.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    for base in cls.bases:
        parent = _class(tree, base.id) if isinstance(base, ast.Name) and depth < 8 else None
        if parent is not None and parent is not cls:
            found = _method(parent, name, tree, depth + 1)
            if found is not None:
                return found
    return None


def _inherits_forward(cls: ast.ClassDef, tree: ast.Module) -> bool:
    """Whether a base class that is not nn.Module itself could bring a forward (the rules judge which)."""
    return any(ast.unparse(base).split(".")[-1] != "Module" for base in cls.bases)
