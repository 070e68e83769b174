"""The kernels/ folder: pairs, torch-free .cu files, nothing left over; and the fixed files beside it."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import subprocess
from pathlib import Path

from utils.problem.workspace import ROOT, Workspace
from utils.rules.cpp_source import CppSource, text, walk
from utils.rules.python_reading import Reader
from utils.rules.rule import Violation, rule

TORCH_IN_CU = rule(
    "torch-in-cu",
    ".cu files and the headers they include are CUDA only: no torch, ATen or c10 header",
    "the #include lines of .cu and .cuh files",
    "keep tensors in name_binding.cpp; the .cu file takes pointers, sizes and a stream",
)
PAIRS = rule(
    "pairs",
    "kernels come in pairs: name.cu (or name.cpp for cuBLAS and cuDNN calls) with name_binding.cpp",
    "the file names in kernels/",
    "add the missing half, or move shared code to a .cuh header",
)
LEFTOVERS = rule(
    "leftovers",
    "kernels/ holds only what the final ModelNew uses",
    "file names of earlier attempts, functions registered but never called, kernels never launched",
    "delete it (version control keeps the old one), or call it",
)
FIXED = rule(
    "fixed-files",
    "utils/, binding.cpp and binding_registry.h stay as they are",
    "their digests against the last commit, and copies of them in the workspace",
    "restore them: git checkout HEAD -- utils binding.cpp binding_registry.h setup.py",
    policy=False,
)

_OLD_NAME = re.compile(r"(_v\d+|_old|_orig|_bak|_backup|_copy|_tmp|_temp|_wip|_draft|_test|_attempt\d*|_try\d*)$", re.I)
_OLD_FILE = re.compile(r"(\.(bak|orig|old|rej|swp|swo|tmp|save|disabled|txt)\d*|~)$", re.I)
_BUILT = {".o", ".so", ".a", ".ptx", ".cubin", ".fatbin", ".ii", ".pyc", ".obj"}
_TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2|pybind11)/|(^|/)binding_registry\.h$|^Python\.h$")
_FIXED_NAMES = ("binding.cpp", "binding_registry.h", "setup.py")


def folder_violations(workspace: Workspace, sources: list[CppSource]) -> list[Violation]:
    """torch-in-cu, pairs and the leftovers that file names show."""
    return [*_torch_in_cu(sources), *_pairs(workspace.kernels), *_old_files(workspace.kernels)]


def _torch_in_cu(sources: list[CppSource]) -> list[Violation]:
    found = []
    for source in sources:
        if source.path.suffix in {".cu", ".cuh"}:
            for path, line in source.includes:
                if _TORCH_HEADER.search(path):
                    found.append(
                        Violation(
                            TORCH_IN_CU.id,
                            f"{source.path.name} includes {path}",
                            source.path,
                            line,
                            f"#include <{path}>",
                            TORCH_IN_CU.mend,
                        )
                    )
    return found


def _pairs(folder: Path) -> list[Violation]:
    if not folder.is_dir():
        return []
    files = [path for path in sorted(folder.iterdir()) if path.is_file() and not _OLD_FILE.search(path.name)]
    bindings = {
        path.stem.removesuffix("_binding"): path
        for path in files
        if path.suffix == ".cpp" and path.stem.endswith("_binding")
    }
    halves: dict[str, Path] = {}
    for path in files:
        if path.suffix == ".cu" or (path.suffix == ".cpp" and not path.stem.endswith("_binding")):
            halves[path.stem] = path
    found = []
    for stem, path in halves.items():
        if stem not in bindings:
            found.append(
                Violation(PAIRS.id, f"{path.name} has no {stem}_binding.cpp", path, None, path.name, PAIRS.mend)
            )
    for stem, path in bindings.items():
        if stem not in halves:
            found.append(Violation(PAIRS.id, f"{path.name} has no {stem}.cu", path, None, path.name, PAIRS.mend))
    return found


def _old_files(folder: Path) -> list[Violation]:
    found = []
    for path in sorted(folder.rglob("*")) if folder.is_dir() else []:
        if not path.is_file() or "__pycache__" in path.parts:
            continue
        stem = path.stem.removesuffix("_binding")
        if _OLD_FILE.search(path.name) or _OLD_NAME.search(stem):
            found.append(
                Violation(
                    LEFTOVERS.id,
                    f"{path.name} is named like an earlier attempt",
                    path,
                    None,
                    path.name,
                    "delete it, or give the final version its plain name",
                )
            )
        elif path.suffix in _BUILT:
            found.append(
                Violation(LEFTOVERS.id, f"{path.name} is built, not written", path, None, path.name, LEFTOVERS.mend)
            )
        elif path.suffix == ".py":
            found.append(
                Violation(
                    LEFTOVERS.id, f"{path.name} is no kernel", path, None, path.name, "move scripts out of kernels/"
                )
            )
    return found


def unused_violations(sources: list[CppSource], reader: Reader) -> list[Violation]:
    """Functions registered but never called by ModelNew, and __global__ functions nothing mentions."""
    return [*_unused_functions(sources, reader), *_unused_kernels(sources)]


def _unused_functions(sources: list[CppSource], reader: Reader) -> list[Violation]:
    used = {path.split(".")[1] for _, path, _, _ in reader.references if path.startswith("cuda_extension.")}
    if reader.model_new is None or "*" in used or _dynamic_use(reader):
        return []
    found = []
    for source in sources:
        if not source.path.name.endswith("_binding.cpp"):
            continue
        registered = list(_registered(source))
        # Forms of one kernel may be registered together; the pair is left over when none of them is called.
        for name, line in registered:
            if name not in used:
                found.append(
                    Violation(
                        LEFTOVERS.id,
                        f"{name} is registered but ModelNew never calls it",
                        source.path,
                        line,
                        f'm.def("{name}", ...)',
                        LEFTOVERS.mend,
                    )
                )
    return found


def _registered(source: CppSource):
    """(name, line) of every m.def("name", ...)."""
    for node in walk(source.root):
        if node.type != "call_expression":
            continue
        function, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "field_expression":
            continue
        name = function.child_by_field_name("field")
        first = next((child for child in arguments.children if child.is_named), None)
        if name is not None and text(name) == "def" and first is not None and first.type == "string_literal":
            yield text(first).strip('"'), source.line(node)


def _dynamic_use(reader: Reader) -> bool:
    """Whether the extension is used in a way that reading cannot follow, so that nothing can be called unused."""
    for file in list(reader.files.values()):
        for node in ast.walk(file.tree):
            if (
                isinstance(node, ast.ImportFrom)
                and node.module == "cuda_extension"
                and any(alias.name == "*" for alias in node.names)
            ):
                return True
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "getattr"
                and node.args
            ):
                owner = (
                    reader.quietly(node.args[0], file.scope)
                    if not isinstance(node.args[0], ast.Name)
                    else reader.top_level(file, node.args[0].id)
                )
                if getattr(owner, "path", "") == "cuda_extension" and not (
                    len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
                ):
                    return True
    return False


def _unused_kernels(sources: list[CppSource]) -> list[Violation]:
    words = [
        text(node)
        for source in sources
        for node in walk(source.root)
        if node.type in {"identifier", "field_identifier"}
    ]
    # Macros are not parsed, but they may launch.
    macros = " ".join(text(node) for source in sources for node in walk(source.root) if node.type == "preproc_arg")
    found = []
    for source in sources:
        if source.path.suffix != ".cu":
            continue
        for node in walk(source.root):
            if node.type != "function_definition" or not any(text(child) == "__global__" for child in node.children):
                continue
            name = _declared_name(node)
            if name and words.count(name) <= 1 and not re.search(rf"\b{re.escape(name)}\b", macros):
                found.append(
                    Violation(
                        LEFTOVERS.id,
                        f"the kernel {name} is never launched",
                        source.path,
                        source.line(node),
                        name,
                        LEFTOVERS.mend,
                    )
                )
    return found


def _declared_name(node) -> str | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    name = declarator.child_by_field_name("declarator") if declarator is not None else None
    return text(name) if name is not None else None


def fixed_violations(workspace: Workspace) -> list[Violation]:
    """Changed fixed files. This is a tripwire for accidents and plain edits, not protection against a determined
    author, who could change the rule too: the digest of the harness in every verdict is what an outsider compares.

    People who develop the workbench itself set KERNEL_WORKBENCH_DEVELOPER=1, which skips the comparison with HEAD.
    """
    if workspace.root != ROOT:
        return _changed_copies(workspace)
    if os.environ.get("KERNEL_WORKBENCH_DEVELOPER") == "1":
        return []
    committed = _committed()
    if not committed:
        return []
    changed = [name for name, digest in committed.items() if not _same(ROOT / name, digest)]
    changed += [name for name in _python_files() if name not in committed]
    if not changed:
        return []
    listed = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
    first = ROOT / changed[0]
    return [
        Violation(
            FIXED.id, f"files of the workbench differ from the last commit: {listed}", first, None, listed, FIXED.mend
        )
    ]


def _same(path: Path, digest: str) -> bool:
    return path.is_file() and _blob(path.read_bytes()) == digest


def _python_files() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "utils").rglob("*.py"))


def _changed_copies(workspace: Workspace) -> list[Violation]:
    """A workspace needs no copy of the fixed files; one that differs is an edit that would not take effect."""
    found = []
    for name in _FIXED_NAMES:
        copy, original = workspace.root / name, ROOT / name
        if copy.is_file() and original.is_file() and copy.read_bytes() != original.read_bytes():
            found.append(
                Violation(
                    FIXED.id,
                    f"the workspace's {name} differs from the workbench's",
                    copy,
                    None,
                    name,
                    f"remove {copy.name}: the build uses the workbench's own",
                )
            )
    return found


def _committed() -> dict[str, str]:
    """Path -> blob id of the fixed files in HEAD; empty where there is no repository or no commit to compare with."""
    command = ["git", "-c", "safe.directory=*", "-C", str(ROOT), "ls-tree", "-r", "HEAD", "--", "utils", *_FIXED_NAMES]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    if listed.returncode != 0:
        return {}
    found = {}
    for line in listed.stdout.splitlines():
        facts, _, name = line.partition("\t")
        found[name] = facts.split()[2]
    return found


def _blob(content: bytes) -> str:
    """git's id of a file's content, worked out here so that neither the index nor its settings can excuse a change."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
