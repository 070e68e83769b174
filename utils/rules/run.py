"""All rules applied to one solution."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.judge import staging
from utils.present.outcome import CannotTell
from utils.problem.loader import inline_build_folder, module_path
from utils.problem.solution import Solution, parse
from utils.rules.cpp_compute import cpp_compute_violations
from utils.rules.cpp_source import CppSource, inline_sources, kernel_sources
from utils.rules.dispatch import dispatched_violations
from utils.rules.elf import read_shared_object
from utils.rules.internals import guard_violations, internals_violations
from utils.rules.kernel_files import fixed_violations, folder_violations, unused_violations
from utils.rules.libraries import import_violations, source_violations
from utils.rules.object_symbols import object_violations
from utils.rules.python_compute import EARLY, FORWARD, HIDDEN, early_violations, forward_violations, names_called
from utils.rules.python_reading import Reader
from utils.rules.python_values import Many, Plain, Value
from utils.rules.reach import reach_violations, reference_violations
from utils.rules.rule import Violation
from utils.rules.streams import python_stream_violations, stream_positions, stream_violations


def static_violations(solution: Solution, problem: Path | None = None) -> list[Violation]:
    """Every breach that reading the solution's files and its built module shows; nothing of it is run.

    `problem` (the workspace's model.py by default) tells what Model's constructor does too and what kinds of
    argument forward takes. Raises CannotTell when the solution cannot be read as Python.
    """
    problem = problem or problem_of(solution)
    reader = Reader(solution.path, forward_hints(problem))
    found = [
        *forward_violations(reader),
        *early_violations(reader, problem),
        *python_stream_violations(reader),
        *import_violations(reader, solution.kind),
        *reference_violations(reader),
        *(reaching := reach_violations(reader)),
        *internals_violations(reader, reaching),
    ]
    sources = sources_of(solution, reader)
    positions = stream_positions(sources)
    for source in sources:
        found += cpp_compute_violations(source)
        found += source_violations(source)
        found += guard_violations(source)
        found += stream_violations(source, positions)
    if solution.kind == "load_inline" and not sources:
        found.append(
            Violation(
                HIDDEN.id,
                "the extension's C++ is not written out in the file",
                solution.path,
                _inline_line(reader),
                "load_inline(...)",
                HIDDEN.mend,
            )
        )
    if solution.kind == "extension" and solution.workspace is not None:
        found += folder_violations(solution.workspace, sources)
        found += unused_violations(sources, reader)
        found += fixed_violations(solution.workspace)
    for built in built_modules(solution):
        found += object_violations(read_shared_object(built))
    return _once(sorted(found, key=lambda v: (str(v.path), v.line or 0, v.rule)))


def _once(found: list[Violation]) -> list[Violation]:
    """One breach of a rule a line; what forward does is not said again of the constructor that prepares it."""
    kept: dict[tuple[Any, ...], Violation] = {}
    for violation in found:
        place = (violation.path, violation.line)
        kept.setdefault((violation.rule, *place, violation.evidence if violation.line is None else None), violation)
    forward = {(v.path, v.line) for v in kept.values() if v.rule == FORWARD.id}
    return [v for v in kept.values() if v.rule != EARLY.id or (v.path, v.line) not in forward]


def dispatch_violations(ops: Sequence[Mapping[str, Any]], solution: Solution) -> list[Violation]:
    """Every breach shown by the operators torch dispatched while the solution ran.

    `ops` is the runner's record: {"op": "aten::mm", "count": 1, "phase": "forward" | "init" | "load_state_dict",
    "python_stack": ["model_new.py:12"]}.
    """
    problem = problem_of(solution)
    return dispatched_violations(ops, solution, names_called(problem) if problem else set())


def problem_of(solution: Solution) -> Path | None:
    """The problem file that belongs to a solution by its place: model.py beside it."""
    beside = solution.workspace.model if solution.workspace else solution.path.parent / "model.py"
    return beside if beside.is_file() else None


def forward_hints(problem: Path | None) -> list[str | None]:
    """The annotations of Model.forward's parameters, in order; unannotated ones with a plain default count as plain."""
    if problem is None:
        return []
    try:
        tree = parse(problem)
    except CannotTell:
        return []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == "Model":
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    return [ast.unparse(a.annotation) if a.annotation else None for a in method.args.args[1:]]
    return []


def sources_of(solution: Solution, reader: Reader) -> list[CppSource]:
    """The C++ and CUDA of a solution, in files or in strings."""
    if solution.kind == "extension" and solution.workspace is not None:
        return kernel_sources(solution.workspace.kernels)
    if solution.kind != "load_inline":
        return []
    folded: list[str] = []
    for node in ast.walk(reader.file.tree):
        if isinstance(node, ast.Call) and (ast.unparse(node.func).split(".")[-1]) in {"load_inline", "load"}:
            for keyword in node.keywords:
                if keyword.arg in {"cpp_sources", "cuda_sources"}:
                    folded += _strings(reader.quietly(keyword.value, reader.file.scope))
    sources = inline_sources(solution.path, reader.file.tree, folded)
    # Sources kept in files beside the solution, named in the text.
    for node in ast.walk(reader.file.tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.endswith((".cu", ".cpp", ".cc", ".cuh"))
        ):
            path = solution.path.parent / node.value
            if path.is_file():
                sources.append(CppSource(path, path.read_bytes(), inline=True))
    return sources


def _strings(value: Value) -> list[str]:
    if isinstance(value, Plain) and value.known and isinstance(value.const, str):
        return [value.const]
    return [text for item in value.items for text in _strings(item)] if isinstance(value, Many) else []


def built_modules(solution: Solution) -> list[Path]:
    """Modules built from the solution that lie there already."""
    if solution.kind == "extension" and solution.workspace is not None:
        path = module_path(solution.workspace)
        return [path] if path.is_file() else []
    if solution.kind == "load_inline":
        # Both places a solution is built in: by the loader of trusted processes, and by the judge's runner.
        places = [inline_build_folder(solution), staging.runner_build_folder(solution)]
        return sorted({path.name: path for place in places for path in place.glob("*/*.so")}.values())
    return []


def _inline_line(reader: Reader) -> int | None:
    for node in ast.walk(reader.file.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {"load_inline", "load"}:
            return node.lineno
    return None
