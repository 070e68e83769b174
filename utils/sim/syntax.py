"""CUDA C++ as a syntax tree, for the rewriter; what the grammar does not know is masked before parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from tree_sitter import Language, Node, Parser

# Spellings that the grammar misreads; each is parsed as something of the same length, so that places stay true.
_MASKS = [
    (re.compile(rb"\b__align__(?=\s*\()"), b"alignas  "),
    (re.compile(rb"(?<=[\])])(\s*)__(?:device__|host__)(?:\s*__(?:device__|host__))*"), None),
    (re.compile(rb"\b__forceinline__\b"), None),
    (re.compile(rb"\b__noinline__\b"), None),
    (re.compile(rb"\b__grid_constant__\b"), None),
    (re.compile(rb"\b__restrict__\b"), None),
    (re.compile(rb"\bextern(\s*)\"C\"(?=\s*__global__)"), None),
    (re.compile(rb"\b__cluster_dims__\s*\([^()]*\)"), None),
    (re.compile(rb"\b__maxnreg__\s*\([^()]*\)"), None),
]
_NOT_NEWLINE = re.compile(rb"[^\n]")


@cache
def _parser() -> Parser:
    import tree_sitter_cuda

    return Parser(Language(tree_sitter_cuda.language()))


def masked(source: bytes) -> bytes:
    """`source` with the spellings of _MASKS replaced, byte for byte as long."""
    for pattern, replacement in _MASKS:
        if replacement is None:
            source = pattern.sub(lambda match: _NOT_NEWLINE.sub(b" ", match[0]), source)
        else:
            source = pattern.sub(replacement, source)
    return source


def parse(source: bytes) -> Node:
    """The root of the tree of `source`, whose byte places are those of `source` itself."""
    return _parser().parse(masked(source)).root_node


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, in the order of the text."""
    todo = [node]
    while todo:
        here = todo.pop()
        yield here
        todo.extend(reversed(here.children))


def without_comments_and_strings(source: bytes) -> bytes:
    """`source` with comments and the contents of literals blanked, byte for byte as long: for counting tokens."""
    pattern = re.compile(
        rb'//(?:[^\n\\]|\\.|\\\n)*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
        re.S,
    )
    return pattern.sub(lambda match: _NOT_NEWLINE.sub(b" ", match[0]), source)
