"""C++ and CUDA sources as syntax trees: files of kernels/, and the source strings of a load_inline solution."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from tree_sitter import Language, Node, Parser

SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".h", ".hpp", ".inl")
_TORCH_INCLUDE = re.compile(r"^(torch|ATen|c10|caffe2)/")
_LOOKS_LIKE_CPP = re.compile(r"#\s*include|__global__|\b(torch|at)::\w|PYBIND11_MODULE")


@dataclass(frozen=True)
class CppSource:
    """One source: the file it stands in and, for a string inside a Python file, the lines that come before it."""

    path: Path
    code: bytes
    first_line: int = 1
    inline: bool = False

    @cached_property
    def root(self) -> Node:
        return _parser("cpp" if self.path.suffix in {".cpp", ".cc", ".cxx"} else "cuda").parse(self.code).root_node

    def line(self, node: Node) -> int:
        return node.start_point[0] + self.first_line

    @cached_property
    def includes(self) -> list[tuple[str, int]]:
        """(path, line) of every #include, without its brackets or quotes."""
        found = []
        for node in walk(self.root):
            if node.type == "preproc_include":
                path = node.child_by_field_name("path")
                if path is not None:
                    found.append((text(path).strip('<>"'), self.line(node)))
        return found

    @cached_property
    def sees_torch(self) -> bool:
        """Whether tensors can occur here at all; headers of the solution itself are taken to bring them along."""
        named = any(_TORCH_INCLUDE.match(path) or path.endswith("binding_registry.h") for path, _ in self.includes)
        return named or self.inline or re.search(rb"\b(torch|at)\s*::\s*Tensor", self.code) is not None

    def said(self, node: Node) -> str:
        """The node's own words in one short line."""
        words = " ".join(text(node).split())
        return words if len(words) <= 90 else words[:87] + "..."


@lru_cache(maxsize=2)
def _parser(language: str) -> Parser:
    grammar = importlib.import_module("tree_sitter_cuda" if language == "cuda" else "tree_sitter_cpp")
    return Parser(Language(grammar.language()))


def text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, in the order of the text; comments are left out."""
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == "comment":
            continue
        yield current
        pending += reversed(current.children)


def kernel_sources(folder: Path) -> list[CppSource]:
    """Every source and header below `folder`, sorted by path."""
    if not folder.is_dir():
        return []
    files = sorted(path for path in folder.rglob("*") if path.suffix in SOURCE_SUFFIXES and path.is_file())
    return [CppSource(path, path.read_bytes()) for path in files]


def inline_sources(path: Path, tree: ast.Module, folded: list[str]) -> list[CppSource]:
    """The C++ in the strings of a Python file.

    `folded` are source arguments whose value the reader could work out (pieces joined with +, say); beside them every
    string constant that looks like C++ counts, so that a source with a number formatted into it is read as well.
    """
    sources = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _LOOKS_LIKE_CPP.search(node.value):
            if _is_docstring(tree, node):
                continue
            sources.append(CppSource(path, node.value.encode(), node.lineno, inline=True))
    whole = {source.code.decode() for source in sources}
    for value in folded:
        if value not in whole and _LOOKS_LIKE_CPP.search(value):
            line = next((s.first_line for s in sources if s.code.decode() in value), 1)
            sources.append(CppSource(path, value.encode(), line, inline=True))
    return sources


def _is_docstring(tree: ast.Module, constant: ast.Constant) -> bool:
    return any(isinstance(node, ast.Expr) and node.value is constant for node in ast.walk(tree))
