"""Mechanical mends of a problem file, as the smallest edits of its text: comments and layout stay as they are."""

from __future__ import annotations

import ast
import difflib
import io
import os
import tempfile
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.checks.finding import Finding
from utils.problem.checks.source import Source, device_calls, names_gpu


@dataclass(frozen=True)
class Fix:
    """A mended text and what was done to it, one sentence per mend."""

    path: Path
    before: str
    after: str
    done: list[str]

    def diff(self) -> str:
        """The change as a unified diff."""
        return "".join(
            difflib.unified_diff(
                self.before.splitlines(keepends=True),
                self.after.splitlines(keepends=True),
                str(self.path),
                f"{self.path} (mended)",
            )
        )


def fix_problem(path: Path, findings: Iterable[Finding]) -> Fix | None:
    """What --fix would make of the file at `path`, given what the checks found; None when there is nothing to mend.

    Mended are: device placement in get_inputs, the name of the only module, a tuple or lone tensor where a list
    belongs, a missing get_init_inputs of a constructor without arguments. Raises CannotTell when the file cannot be
    read, or when the mended text would not be Python.
    """
    before = _read(path)
    said = {f.check: f.sentence for f in findings if f.status in {"warn", "fail"}}
    text, done = before, []
    # One kind of mend at a time, each on a fresh tree, so that no edit moves under another.
    for mend in (_off_the_gpu, _class_name, _lists, _init_inputs):
        try:
            source = Source(path, ast.parse(text))
        except SyntaxError:
            return None
        edits, sentences = mend(source, text, said)
        text = _apply(text, edits)
        done += sentences
    if text == before:
        return None
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise CannotTell(f"{path.name} cannot be mended mechanically (line {error.lineno}); mend it by hand") from None
    return Fix(path, before, text, done)


def keep_original(path: Path) -> Path:
    """Copies the file to a name beside it that is free; returns where. Raises CannotTell when it cannot."""
    backup = path.with_name(path.name + ".orig")
    number = 1
    while backup.exists():
        backup = path.with_name(f"{path.name}.orig{number}")
        number += 1
    try:
        backup.write_bytes(path.read_bytes())
    except OSError as error:
        raise CannotTell(f"cannot write {backup}: {error.strerror}") from None
    return backup


def write_fix(fix: Fix) -> None:
    """Writes the mended file whole or not at all. Raises CannotTell when it cannot."""
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(fix.path.read_bytes()).readline)[0]
        handle, name = tempfile.mkstemp(dir=fix.path.parent, prefix=f".{fix.path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(fix.after.encode(encoding))
        os.chmod(name, fix.path.stat().st_mode & 0o7777)
        os.replace(name, fix.path)
    except OSError as error:
        raise CannotTell(f"cannot write {fix.path}: {error.strerror}") from None


# An edit: (start, end, replacement) in characters of the text.
Edit = tuple[int, int, str]


def _off_the_gpu(source: Source, text: str, said: dict[str, str]) -> tuple[list[Edit], list[str]]:
    """Removes .cuda(), .to("cuda") and device="cuda" in get_inputs, innermost first by taking one per call site."""
    where = _Offsets(text)
    edits: list[Edit] = []
    sentences = []
    for node, words in device_calls(source):
        edit = _without_device(node, source, where)
        if edit is not None:
            edits.append(edit)
            sentences.append(f"line {node.lineno}: {words} stays on the CPU")
    return edits, sentences


def _without_device(node: ast.Call, source: Source, where: _Offsets) -> Edit | None:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "cuda":
        return (where.end(function.value), where.end(node), "")
    arguments: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
    index = next(
        (
            i
            for i, argument in enumerate(arguments)
            if (isinstance(argument, ast.keyword) and argument.arg == "device" and names_gpu(argument.value, source))
            or (
                isinstance(function, ast.Attribute)
                and function.attr == "to"
                and i == 0
                and isinstance(argument, ast.expr)
                and names_gpu(argument, source)
            )
        ),
        None,
    )
    if index is None:
        return None
    if isinstance(function, ast.Attribute) and function.attr == "to" and len(arguments) == 1:
        return (where.end(function.value), where.end(node), "")
    if index > 0:
        return (where.end(arguments[index - 1]), where.end(arguments[index]), "")
    if len(arguments) > 1:
        return (where.start(arguments[0]), where.start(arguments[1]), "")
    return (where.start(arguments[0]), where.end(arguments[0]), "")


def _class_name(source: Source, text: str, said: dict[str, str]) -> tuple[list[Edit], list[str]]:
    """Renames the file's only module to Model, wherever its name stands."""
    modules = source.modules()
    used = {node.id for node in ast.walk(source.tree) if isinstance(node, ast.Name)}
    if source.model() is not None or len(modules) != 1 or "Model" in used:
        return [], []
    old = modules[0].name
    where = _Offsets(text)
    edits: list[Edit] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and node.id == old:
            edits.append((where.start(node), where.end(node), "Model"))
    start = text.index("class", where.line(modules[0].lineno))
    at = text.index(old, start)
    edits.append((at, at + len(old), "Model"))
    return edits, [f"line {modules[0].lineno}: class {old} is renamed to Model"]


def _lists(source: Source, text: str, said: dict[str, str]) -> tuple[list[Edit], list[str]]:
    """Makes get_inputs and get_init_inputs return lists."""
    where = _Offsets(text)
    edits: list[Edit] = []
    sentences = []
    for name, check in (("get_inputs", "get-inputs"), ("get_init_inputs", "get-init-inputs")):
        function = source.function(name)
        found = said.get(check, "")
        returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)] if function is not None else []
        for node in returns:
            value = node.value
            if isinstance(value, ast.Tuple):
                start, end = where.start(value), where.end(value)
                if text[start] == "(" and text[end - 1] == ")":
                    edits += [(start, start + 1, "["), (end - 1, end, "]")]
                else:
                    edits += [(start, start, "["), (end, end, "]")]
            elif "returned a tuple" in found and value is not None:
                edits += [(where.start(value), where.start(value), "list("), (where.end(value), where.end(value), ")")]
            elif "returned a lone" in found and value is not None and not isinstance(value, ast.List):
                edits += [(where.start(value), where.start(value), "["), (where.end(value), where.end(value), "]")]
            elif (
                "returned None" in found
                and check == "get-init-inputs"
                and (value is None or isinstance(value, ast.Constant))
            ):
                end = where.end(value) if value is not None else where.end(node)
                edits.append((where.start(node), end, "return []"))
            else:
                continue
            sentences.append(f"line {node.lineno}: {name}() returns a list")
    return edits, sentences


def _init_inputs(source: Source, text: str, said: dict[str, str]) -> tuple[list[Edit], list[str]]:
    """Adds get_init_inputs where the constructor needs no arguments."""
    if source.function("get_init_inputs") is not None or "no arguments are assumed" not in said.get(
        "get-init-inputs", ""
    ):
        return [], []
    gap = "" if text.endswith("\n") else "\n"
    return [(len(text), len(text), f"{gap}\n\ndef get_init_inputs():\n    return []\n")], ["get_init_inputs() is added"]


class _Offsets:
    """Where syntax tree nodes stand in the text; the tree counts columns in UTF-8 bytes."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def line(self, number: int) -> int:
        return self.starts[number - 1]

    def at(self, line: int, column: int) -> int:
        characters = len(self.lines[line - 1].encode()[:column].decode())
        return self.starts[line - 1] + characters

    def start(self, node: ast.expr | ast.keyword | ast.stmt) -> int:
        return self.at(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.keyword | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.end_lineno, node.end_col_offset)


def _apply(text: str, edits: list[Edit]) -> str:
    """The text with the edits made from the back; of two that overlap the outer one waits for another run."""
    done = len(text) + 1
    # At one place a closing piece goes in before the opening piece that follows it.
    for start, end, words in sorted(set(edits), key=lambda e: (e[0], e[1]), reverse=True):
        if end > done:
            continue
        text = text[:start] + words + text[end:]
        done = start
    return text


def _read(path: Path) -> str:
    try:
        with tokenize.open(path) as file:
            # Line ends are part of the text: a file with CRLF keeps them.
            return path.read_bytes().decode(file.encoding)
    except OSError as error:
        raise CannotTell(f"cannot read {path}: {error.strerror}") from None
    except (SyntaxError, UnicodeDecodeError) as error:
        raise CannotTell(f"cannot read {path} as text: {error}") from None
