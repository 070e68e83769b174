"""Where ModelNew chooses a kernel's configuration: calls of bindings that take an integer `config`.

The calls are found in the syntax tree of the solution's file; that a binding has a parameter `config`, and where, is
read
from its registration in kernels/*_binding.cpp. `rewritten` gives the same file with every choice taken from a table, so
that one process can try them all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from utils.problem.solution import Solution, parse

TABLE = "_workbench_tuning"
_PARAMETER = "config"


@dataclass(frozen=True)
class Site:
    """One call: `key` names it ("layer_norm:37"), `value` is what it passes now, None where that is no literal."""

    key: str
    function: str
    line: int
    value: int | None
    # The span of text to replace, as (line, column) pairs of the file, columns in UTF-8 bytes; equal when inserted.
    start: tuple[int, int]
    end: tuple[int, int]
    inserted: str  # what comes before an inserted value: ", config=", or "" when an expression is replaced
    call: str

    position: int = -1  # of the replaced expression among the positional arguments

    def with_value(self, value: int) -> str:
        """The call as it would read with this configuration, in one line."""
        node = ast.parse(self.call.strip(), mode="eval").body
        assert isinstance(node, ast.Call)
        given = [keyword for keyword in node.keywords if keyword.arg == _PARAMETER]
        if given:
            given[0].value = ast.Constant(value)
        elif self.position >= 0:
            node.args[self.position] = ast.Constant(value)
        else:
            node.keywords.append(ast.keyword(_PARAMETER, ast.Constant(value)))
        return ast.unparse(node)


def signatures(kernels: Path) -> dict[str, list[tuple[str, str | None]]]:
    """Python name -> [(parameter, default or None)] of every function that kernels/*_binding.cpp registers.

    Only parameters named with pybind11's arg("...") are known; positions count from the first of them.
    """
    found: dict[str, list[tuple[str, str | None]]] = {}
    for path in sorted(kernels.rglob("*_binding.cpp")):
        # Documentation in raw strings may show registrations that are none.
        text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', path.read_text(encoding="utf-8", errors="replace"), flags=re.DOTALL)
        for match in re.finditer(r"\bdef\s*\(\s*\"([^\"]+)\"", text):
            body = _balanced(text, text.index("(", match.start()))
            arguments = re.findall(r'arg\s*\(\s*"(\w+)"\s*\)(?:\s*\.\s*none\s*\([^)]*\))?(?:\s*=\s*([^,)]+))?', body)
            found[match[1]] = [(name, default.strip() or None) for name, default in arguments]
    return found


def find_sites(solution: Solution) -> list[Site]:
    """The choices in the solution's file, in order of appearance. Raises CannotTell when the file is not Python."""
    tree = parse(solution.path)
    source = solution.path.read_text(encoding="utf-8")
    known = (
        signatures(solution.workspace.kernels)
        if solution.workspace is not None and solution.workspace.kernels.is_dir()
        else {}
    )
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    sites: list[Site] = []
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else ""
        )
        site = _site(node, name, known.get(name), ast.get_source_segment(source, node) or ast.unparse(node))
        if site is not None:
            number = sum(other.key.split("#")[0] == site.key for other in sites)
            sites.append(site if not number else replace(site, key=f"{site.key}#{number + 1}"))
    return sites


def rewritten(source: str, sites: Sequence[Site], values: Mapping[str, int]) -> str:
    """The file with each site's configuration looked up in a table, filled with `values` at first."""
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    for site in sorted(sites, key=lambda item: item.start, reverse=True):
        text = f"{site.inserted}{TABLE}[{site.key!r}]".encode()
        first, last = site.start[0] - 1, site.end[0] - 1
        joined = lines[first][: site.start[1]] + text + lines[last][site.end[1] :]
        lines[first : last + 1] = [joined, *([b""] * (last - first))]
    # Behind a docstring and __future__ imports nothing may be forced; at the end the table is still there before
    # forward runs.
    table = f"\n\n{TABLE} = {dict(values)!r}\n"
    return b"".join(lines).decode() + table


def _site(node: ast.Call, name: str, signature: list[tuple[str, str | None]] | None, text: str) -> Site | None:
    key = f"{name}:{node.lineno}"

    def over(value: ast.expr, position: int) -> Site:
        now = value.value if isinstance(value, ast.Constant) and type(value.value) is int else None
        start, end = (value.lineno, value.col_offset), (value.end_lineno or value.lineno, value.end_col_offset or 0)
        return Site(key, name, node.lineno, now, start, end, "", text, position)

    for keyword in node.keywords:
        if keyword.arg == _PARAMETER and (signature is not None or isinstance(keyword.value, ast.Constant)):
            return over(keyword.value, -1)
    names = [parameter for parameter, _ in signature or []]
    if _PARAMETER not in names or any(isinstance(argument, ast.Starred) for argument in node.args):
        return None
    place = names.index(_PARAMETER)
    if place < len(node.args):
        return over(node.args[place], place)
    default = (signature or [])[place][1]
    now = int(default) if default and re.fullmatch(r"-?\d+", default) else None
    # Just before the closing parenthesis; a trailing comma there makes the comma of the insertion superfluous.
    end = (node.end_lineno or node.lineno, (node.end_col_offset or 1) - 1)
    comma = "" if re.search(r",\s*\)$", text) or not (node.args or node.keywords) else ", "
    return Site(key, name, node.lineno, now, end, end, f"{comma}{_PARAMETER}=", text)


def _balanced(text: str, start: int) -> str:
    """From the parenthesis at `start` to its partner; string literals are skipped over."""
    depth, place = 0, start
    while place < len(text):
        if text[place] == '"':
            place += 1
            while place < len(text) and text[place] != '"':
                place += 2 if text[place] == "\\" else 1
        elif text[place] == "(":
            depth += 1
        elif text[place] == ")":
            depth -= 1
            if depth == 0:
                return text[start : place + 1]
        place += 1
    return text[start:]
