"""Mistakes that can be told from the sources alone, found before a compiler spends its time on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from utils.build import functions
from utils.build.failures import Failure
from utils.build.scan import macro_uses
from utils.build.sources import BINDING_SUFFIX, Sources, included_files
from utils.problem.workspace import ROOT, Workspace

# nvcc passes source names through a shell.
_BAD_IN_NAMES = set("$\"'`\\\n")


def check(workspace: Workspace, sources: Sources, shown: Callable[[Path], str]) -> tuple[list[Failure], list[str]]:
    """(failures, warnings) of the sources; `shown` gives the name of a path in messages."""
    if not sources.bindings:
        return [_no_bindings(workspace, sources)], []
    bad_names = [path for path in sources.own if _BAD_IN_NAMES & set(path.name)]
    if bad_names:
        return [_bad_name(path, shown) for path in bad_names], []
    texts = {path: _read(path) for path in sources.own}
    failures = _second_modules(texts, shown) + _double_registrations(texts, shown)
    warnings = _unregistered(sources, texts, shown) + _unpaired(sources, shown)
    headers = included_files(workspace, sources.own) - set(sources.own) - {ROOT / "binding_registry.h"}
    relevant = [*sources.own, *sorted(path for path in headers if '"C"' in _read(path))]
    try:
        parsed = functions.parse_files(relevant, shown)
    except ImportError as error:
        warnings.append(
            f"the signatures of launchers were not compared: {error}; pip install tree-sitter tree-sitter-cuda"
        )
        return failures, warnings
    failures += [_mismatch(each) for each in functions.mismatches(parsed)]
    own = {shown(path) for path in sources.own}
    failures += [
        _duplicate(*pair) for pair in functions.duplicate_definitions(each for each in parsed if each.file in own)
    ]
    return failures, warnings


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _no_bindings(workspace: Workspace, sources: Sources) -> Failure:
    if not workspace.kernels.is_dir():
        return Failure(
            "the workspace has no kernels/ folder",
            place=str(workspace.root),
            meaning="the module is made from kernels/<name>.cu and kernels/<name>_binding.cpp.",
            remedy="make the folder with a first pair of files, or give --workspace another folder.",
        )
    there = ", ".join(path.name for path in (*sources.kernels, *sources.helpers)) or "no source at all"
    return Failure(
        "no kernels/*_binding.cpp was found",
        place=str(workspace.kernels),
        meaning=f"nothing would be registered in the module; kernels/ holds {there}.",
        remedy="add kernels/<name>_binding.cpp, ending with REGISTER_BINDING(<name>, <function>);",
    )


def _bad_name(path: Path, shown: Callable[[Path], str]) -> Failure:
    return Failure(
        f"the file name {path.name!r} has a character nvcc cannot take",
        place=shown(path),
        meaning="nvcc passes file names through a shell, where $, quotes and backslashes change them.",
        remedy="rename the file.",
    )


def _second_modules(texts: dict[Path, str], shown: Callable[[Path], str]) -> list[Failure]:
    found = []
    for path, text in texts.items():
        for use in macro_uses(text, "PYBIND11_MODULE"):
            if use.conditional:
                continue
            name = use.arguments.split(",")[0].strip()
            found.append(
                Failure(
                    f"a second module: PYBIND11_MODULE({name}, ...)",
                    place=f"{shown(path)}:{use.line}",
                    meaning="a workspace has one module, cuda_extension, made by binding.cpp from all registrations.",
                    remedy="turn its body into a function void register_x(pybind11::module& m) {...} and end the file "
                    "with REGISTER_BINDING(x, register_x);",
                )
            )
    return found


def _double_registrations(texts: dict[Path, str], shown: Callable[[Path], str]) -> list[Failure]:
    places: dict[str, str] = {}
    found = []
    for path, text in texts.items():
        for use in macro_uses(text, "REGISTER_BINDING"):
            name = use.arguments.split(",")[0].strip()
            if use.conditional or not name.isidentifier():
                continue
            place = f"{shown(path)}:{use.line}"
            if name in places:
                found.append(
                    Failure(
                        f"two kernels are registered as '{name}': at {places[name]} and at {place}",
                        place=place,
                        meaning="the name of a registration is unique in the module.",
                        remedy="rename one of them, or delete the file that is an old attempt.",
                    )
                )
            places.setdefault(name, place)
    return found


def _unregistered(sources: Sources, texts: dict[Path, str], shown: Callable[[Path], str]) -> list[str]:
    return [
        f"{shown(path)} has no REGISTER_BINDING: what it defines cannot be called from Python"
        for path in sources.bindings
        if "REGISTER_BINDING" not in texts[path]
    ]


def _unpaired(sources: Sources, shown: Callable[[Path], str]) -> list[str]:
    bound = {path.stem.removesuffix(BINDING_SUFFIX) for path in sources.bindings}
    return [
        f"{shown(path)} has no {path.stem}{BINDING_SUFFIX}.cpp beside it"
        for path in sources.kernels
        if path.stem not in bound
    ]


def _mismatch(found: functions.Mismatch) -> Failure:
    declared, defined = found.declared, found.defined
    return Failure(
        f"{declared.name} is declared otherwise than it is defined in {defined.place}: {found.difference}",
        place=declared.place,
        detail=f"declared: {declared.signature}\ndefined:  {defined.signature}",
        meaning='extern "C" names carry no types: this would link, and the launcher would read wrong arguments.',
        remedy=f"make the declaration in {declared.file} the same as the definition in {defined.file}.",
    )


def _duplicate(first: functions.Function, second: functions.Function) -> Failure:
    return Failure(
        f"{second.name} is defined twice: in {first.place} and in {second.place}",
        place=second.place,
        meaning='two definitions of one extern "C" name cannot be linked into one module.',
        remedy="delete the file that is an old attempt, or rename one of the launchers.",
    )
