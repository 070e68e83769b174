"""The sources of a workspace's module: which files are built, and which files they include.

    binding.cpp                 of the repository: the fixed entry
    kernels/<name>.cu           kernels and their launchers
    kernels/<name>_binding.cpp  tensor checks and REGISTER_BINDING
    kernels/<name>.cpp          host code: cuBLAS and cuDNN calls

Only files directly in kernels/ are built; folders in it (kernels/common/) hold headers. Includes are looked for beside
the including file, in the workspace's kernels/, then in the repository's kernels/ (so `common/vector.cuh` works from
every workspace, and so does `../binding_registry.h`) and the repository itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from utils.problem.workspace import ROOT, Workspace

SOURCE_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx")
HEADER_SUFFIXES = (".h", ".hpp", ".hh", ".cuh", ".inl", ".inc")
BINDING_SUFFIX = "_binding"

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.M)


@dataclass(frozen=True)
class Sources:
    """Paths of what is built, each list sorted by name; `ignored` are sources in folders of kernels/, which are not."""

    kernels: tuple[Path, ...]
    bindings: tuple[Path, ...]
    helpers: tuple[Path, ...]
    ignored: tuple[Path, ...] = ()
    entry: Path = ROOT / "binding.cpp"

    @property
    def own(self) -> tuple[Path, ...]:
        """The workspace's own sources: all but the fixed entry."""
        return (*self.kernels, *self.helpers, *self.bindings)


def find_sources(workspace: Workspace) -> Sources:
    """The sources of `workspace`; empty lists where it has no kernels/."""
    kernels, bindings, helpers = [], [], []
    here = sorted(path for path in _files(workspace.kernels, recursive=False) if path.suffix in SOURCE_SUFFIXES)
    for path in here:
        if path.suffix == ".cu":
            kernels.append(path)
        elif path.stem.endswith(BINDING_SUFFIX):
            bindings.append(path)
        else:
            helpers.append(path)
    everywhere = sorted(path for path in _files(workspace.kernels, recursive=True) if path.suffix in SOURCE_SUFFIXES)
    ignored = tuple(path for path in everywhere if path.parent != workspace.kernels)
    return Sources(tuple(kernels), tuple(bindings), tuple(helpers), ignored)


def _files(folder: Path, recursive: bool) -> Iterable[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if recursive and not entry.is_symlink():
                yield from _files(entry, True)
        elif entry.is_file():
            yield entry


def include_folders(workspace: Workspace) -> list[Path]:
    """Where our own headers are looked for, in order, after the including file's folder."""
    return list(dict.fromkeys([workspace.kernels, ROOT / "kernels", ROOT]))


def included_files(workspace: Workspace, sources: Iterable[Path]) -> set[Path]:
    """`sources` and every file of ours that they include, directly or not, by the text of their include lines.

    Conditional includes are followed too; names made by macros are not (the compiler's own list, kept by the build, has
    them). Headers of torch, CUDA and the system are no part of it.
    """
    folders = include_folders(workspace)
    found: set[Path] = set()
    todo = list(sources)
    while todo:
        path = todo.pop()
        if path in found:
            continue
        try:
            text = path.read_bytes()
        except OSError:
            continue
        found.add(path)
        for quoted, angled in _INCLUDE.findall(text):
            name = (quoted or angled).decode("utf-8", "surrogateescape")
            for folder in [path.parent, *folders] if quoted else folders:
                candidate = folder / name
                if candidate.is_file():
                    todo.append(Path(candidate.parent.resolve(), candidate.name))
                    break
    return found


def tracked_files(workspace: Workspace) -> dict[str, Path]:
    """Every file the module is made of, by its name in the digest: relative to the workspace, else `workbench/...`."""
    sources = find_sources(workspace)
    wanted = set(included_files(workspace, [sources.entry, *sources.own]))
    suffixes = SOURCE_SUFFIXES + HEADER_SUFFIXES
    wanted |= {path for path in _files(workspace.kernels, recursive=True) if path.suffix in suffixes}
    named = {}
    for path in wanted:
        if path.is_relative_to(workspace.root):
            named[path.relative_to(workspace.root).as_posix()] = path
        elif path.is_relative_to(ROOT):
            named[f"workbench/{path.relative_to(ROOT).as_posix()}"] = path
        else:
            named[path.as_posix()] = path
    return named
