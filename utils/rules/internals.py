"""The interpreter's and torch's inner workings, through which a solution could blind or replace what watches it.

No kernel needs them, so their use is judged wherever it stands in the file, run or not. The names are read from the
syntax tree: attributes, imports, and the strings that getattr and its like are given. Words in comments, docstrings and
messages are no names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_reading import Reader
from utils.rules.python_values import Name, Plain, PythonFile
from utils.rules.rule import Violation, rule

INTERNALS = rule(
    "internals",
    "a solution leaves the interpreter's frames, torch's dispatch modes and the tables behind imported modules alone",
    "attributes, imports, names given to getattr, vars() and __dict__ of modules; dispatch guards in C++",
    "remove it; call what you need by its name",
    policy=False,
)

# Attributes that lead from an object to frames, code, or the namespace of whoever defined it.
_FRAMES = {
    "tb_frame", "f_back", "f_globals", "f_locals", "f_builtins", "f_code", "gi_frame", "cr_frame", "ag_frame",
    "__globals__", "__builtins__", "__closure__", "cell_contents", "__code__", "__subclasses__", "_getframe",
    "_current_frames", "get_referrers", "get_referents", "from_address", "walk_stack", "walk_tb", "getouterframes",
    "getinnerframes", "currentframe",
}  # fmt: skip
# torch's own names for what watches or steers dispatch.
_DISPATCH = {
    "_python_dispatch", "_disable_current_modes", "_pop_mode", "_pop_mode_temporarily", "_push_mode",
    "_get_current_dispatch_mode", "_get_current_dispatch_mode_stack", "_pop_torch_dispatch_stack",
    "_push_on_torch_dispatch_stack", "_DisableTorchDispatch", "_ExcludeDispatchKeyGuard", "_IncludeDispatchKeyGuard",
    "_ForceDispatchKeyGuard", "_dispatch_tls_set_dispatch_key_excluded", "_dispatch_tls_set_dispatch_key_included",
    "_disable_profiler", "_disable_profiler_legacy", "_enable_profiler_legacy", "_set_dispatch_mode",
    "_unset_dispatch_mode", "_RestorePythonTLSSnapshot", "_SetExcludeDispatchKeyGuard",
}  # fmt: skip
_NAMES = _FRAMES | _DISPATCH
# Of torch._C and what lies below it.
_BELOW_TORCH_C = re.compile(r"dispatch|DispatchKey|_mode\b|Mode\b|Guard\b|profiler", re.I)
_FROM = {
    "inspect": {"stack", "trace", "currentframe", "getouterframes", "getinnerframes"},
    "gc": {"get_objects", "get_referrers", "get_referents"},
    "ctypes": {"py_object", "pythonapi", "PyDLL", "pydll", "cast", "memmove", "memset", "string_at", "PYFUNCTYPE"},
    "sys": {"_getframe", "_current_frames", "settrace", "setprofile"},
}
_BY_NAME = {"getattr", "setattr", "hasattr", "attrgetter", "methodcaller", "getattr_static", "__getattribute__"}
_OWN_MODULES = {"cuda_extension", "inline_extension"}

# Thread-local state of ATen that hides operators from modes and callbacks.
_CPP_GUARDS = {
    "ExcludeDispatchKeyGuard", "IncludeDispatchKeyGuard", "ForceDispatchKeyGuard", "TorchDispatchModeTLS",
    "tls_set_dispatch_key_excluded", "tls_set_dispatch_key_included", "_force_tls_local_dispatch_key_set",
    "StashTorchDispatchModeGuard", "StashTorchDispatchStackGuard", "clearThreadLocalCallbacks", "clearCallbacks",
    "clearGlobalCallbacks", "removeCallback", "disableCallback", "DisableRecordFunctionGuard", "RecordFunctionGuard",
    "enableRecordFunction", "set_record_function_tls_", "disableProfilerLegacy", "disableProfiler",
    "DisablePythonDispatcher",
}  # fmt: skip
_AUTOCAST_OR_GRAD = re.compile(
    r"(c10::)?(impl::)?ExcludeDispatchKeyGuard \w+\s?[({]\s?"
    r"(c10::|at::)?(DispatchKey::Autocast\w*|autograd_dispatch_keyset)\s?[)}]\s?;?"
)


def internals_violations(reader: Reader, reaching: list[Violation]) -> list[Violation]:
    """Breaches in the Python files of a solution, each line once; what the rule `reach` said of is not said again."""
    said = {(violation.path, violation.line) for violation in reaching}
    found: dict[tuple, Violation] = {}
    for file in list(reader.files.values()):
        if file.path.name == "model.py":
            continue
        reader.file = file
        for node, what in _uses(reader, file):
            line = getattr(node, "lineno", None)
            if (file.path, line) in said:
                continue
            words = " ".join(ast.unparse(node).split())[:90]
            sentence = f"it reaches into the interpreter or torch ({what})"
            found.setdefault(
                (file.path, line), Violation(INTERNALS.id, sentence, file.path, line, words, INTERNALS.mend)
            )
    return list(found.values())


def _uses(reader: Reader, file: PythonFile) -> Iterator[tuple[ast.AST, str]]:
    modules = dict(_imported_modules(file.tree))
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute):
            chain = _chain(node, modules)
            if node.attr in _NAMES or _forbidden_path(chain):
                yield node, chain or node.attr
            elif node.attr == "__dict__" and _is_foreign(chain.removesuffix(".__dict__")):
                yield node, chain
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                path = f"{node.module}.{alias.name}"
                if alias.name in _NAMES or _forbidden_path(path):
                    yield node, path
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _forbidden_path(alias.name):
                    yield node, alias.name
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "vars" and len(node.args) == 1 and _is_foreign(_chain(node.args[0], modules)):
                yield node, f"vars({_chain(node.args[0], modules)})"
            elif called in _BY_NAME:
                for argument in node.args:
                    label = _string(reader, argument, file)
                    owner = _chain(node.args[0], modules)
                    if label is None:
                        continue
                    if set(label.split(".")) & _NAMES or _forbidden_path(f"{owner}.{label}"):
                        yield node, label
                    elif label == "__dict__" and _is_foreign(owner):
                        yield node, f"{owner}.__dict__"


def _forbidden_path(path: str) -> bool:
    parts = path.split(".")
    if set(parts) & _DISPATCH:
        return True
    if len(parts) == 2 and parts[1] in _FROM.get(parts[0], ()):
        return True
    return parts[:2] == ["torch", "_C"] and any(_BELOW_TORCH_C.search(part) for part in parts[2:])


def _is_foreign(path: str) -> bool:
    """Whether `path` is dotted from a module that the solution imported, other than what it built itself."""
    root = path.split(".")[0]
    return bool(root) and root not in _OWN_MODULES


def _imported_modules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(local name, full name) of everything imported anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name if alias.asname else alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _chain(node: ast.AST, modules: dict[str, str]) -> str:
    """The full dotted name of `a.b.c` when `a` is imported; '' for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules:
        return ""
    return ".".join([modules[node.id], *reversed(parts)])


def _string(reader: Reader, node: ast.expr, file: PythonFile) -> str | None:
    """The text of a string that is written out or joined from written pieces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, (ast.BinOp, ast.JoinedStr, ast.Name)):
        return None
    value = reader.quietly(node, file.scope)
    if isinstance(value, Name):
        return None
    return value.const if isinstance(value, Plain) and isinstance(value.const, str) else None


def guard_violations(source: CppSource) -> list[Violation]:
    """Guards in C++ that switch dispatch keys, modes or callbacks off; for autocast and autograd alone they may."""
    found: dict[int, Violation] = {}
    for node in walk(source.root):
        if node.type not in {"identifier", "type_identifier", "field_identifier"} or text(node) not in _CPP_GUARDS:
            continue
        statement = node
        while statement.parent is not None and not statement.type.endswith(("declaration", "statement")):
            statement = statement.parent
        if _AUTOCAST_OR_GRAD.fullmatch(" ".join(text(statement).split())):
            continue
        line = source.line(node)
        sentence = f"C++ hides operators from what watches dispatch ({text(node)})"
        found.setdefault(
            line, Violation(INTERNALS.id, sentence, source.path, line, source.said(statement), INTERNALS.mend)
        )
    return list(found.values())
