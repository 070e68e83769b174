"""Plain, short tables and status lines for a person; colour only on a terminal that wants it.

rich draws (it knows terminals, widths and NO_COLOR better than we would); this module fixes the project's few words
and colours, so that every command looks alike. Results go to stdout, progress to stderr.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from utils.present.visible import visible

# Without a terminal rich assumes 80 columns and folds tables; a log file has no such edge.
_NARROWEST_LOG = 160

STYLES = {"pass": "green", "yes": "green", "warn": "yellow", "fail": "bold red", "no": "bold red", "note": "dim"}


def _console(stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        # A letter that the terminal's encoding lacks is written out, and is no reason to end with a traceback.
        stream.reconfigure(errors="backslashreplace")
    probe = Console(stderr=stderr)
    if probe.is_terminal:
        return probe
    return Console(stderr=stderr, width=_NARROWEST_LOG, no_color=True, highlight=False, force_terminal=False)


out = _console(stderr=False)
err = _console(stderr=True)


def say(text: str, style: str | None = None) -> None:
    """One line on stdout; `style` is a key of STYLES. The text is never read as markup, and no control character of
    it reaches the terminal."""
    out.print(Text(visible(text), style=STYLES.get(style or "", "")), soft_wrap=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], right: Sequence[str] = ()) -> None:
    """A table on stdout. Columns named in `right` are aligned right; a cell may be a (text, style) pair."""
    heading = escape(visible(title)) if title else None
    drawn = Table(title=heading, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        drawn.add_column(escape(visible(column)), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        cells = []
        for cell in row:
            text, style = cell if isinstance(cell, tuple) else (cell, None)
            cells.append(Text(visible(str(text)), style=STYLES.get(style or "", "")))
        drawn.add_row(*cells)
    out.print(drawn)


def progress(text: str) -> AbstractContextManager[Any]:
    """A spinner on stderr while something over two seconds runs; one plain line where there is no terminal."""
    if err.is_terminal:
        return err.status(escape(visible(text)))
    err.print(Text(visible(text) + " ..."))
    return nullcontext()
