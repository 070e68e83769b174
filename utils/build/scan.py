"""Looking into C++ text without a parser: comments and strings blanked, conditional regions known, macro uses found.

Just enough to find a macro used at file level and its place. Where a line may be compiled or not (it stands inside an
#if), `conditional` says so, and the caller does not judge by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKENS = re.compile(
    r"""//(?:\\\n|[^\n])*            # line comment, continued lines too
      | /\*.*?(?:\*/|\Z)             # block comment
      | R"(?P<fence>[^()\\\s]{0,16})\(.*?\)(?P=fence)"   # raw string
      | "(?:\\.|[^"\\\n])*"          # string
      | '(?:\\.|[^'\\\n])+'          # character; digit separators (1'000) are left alone below
    """,
    re.X | re.S,
)
_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w+)")


def blanked(text: str) -> str:
    """`text` with comments and the contents of strings as spaces; every other character keeps its place."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("'") and match.start() and text[match.start() - 1].isalnum() and len(found) > 3:
            return found
        return re.sub(r"[^\n]", " ", found)

    return _TOKENS.sub(blank, text)


@dataclass(frozen=True)
class MacroUse:
    """`NAME(arguments)` in a source: the text between the brackets, the line (from 1), whether an #if surrounds it."""

    arguments: str
    line: int
    conditional: bool


def macro_uses(text: str, name: str) -> Iterator[MacroUse]:
    """The uses of a macro in `text` that are neither in a comment or string nor in a preprocessor directive."""
    code = blanked(text)
    if name not in code:
        return
    directives, depths = _directives(code.split("\n"))
    for found in re.finditer(rf"\b{re.escape(name)}\s*\(", code):
        number = code.count("\n", 0, found.start())
        if directives[number]:
            continue
        end, open_brackets = found.end(), 1
        while end < len(code) and open_brackets:
            open_brackets += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        yield MacroUse(text[found.end() : end - 1].strip(), number + 1, depths[number] > 0)


def _directives(lines: list[str]) -> tuple[list[bool], list[int]]:
    """For each line: whether it belongs to a preprocessor directive, and how many #if surround it."""
    directives: list[bool] = []
    depths: list[int] = []
    depth, continued = 0, False
    for line in lines:
        match = None if continued else _DIRECTIVE.match(line)
        if match and match[1] in ("if", "ifdef", "ifndef"):
            depth += 1
        elif match and match[1] == "endif":
            depth = max(0, depth - 1)
        directives.append(continued or match is not None)
        continued = directives[-1] and line.endswith("\\")
        depths.append(depth)
    return directives, depths


def starts_with_includes(text: str, headers: tuple[str, ...]) -> bool:
    """Whether each of `headers` is included in the first run of #include lines, before any other directive or code."""
    seen = set()
    code, raw = blanked(text).split("\n"), text.split("\n")
    for blank_line, line in zip(code, raw, strict=True):
        if not blank_line.strip():
            continue
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if match:
            seen.add(match[1])
        elif not re.match(r"\s*#\s*pragma\s+once", blank_line):
            break
    return seen.issuperset(headers)
