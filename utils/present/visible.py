"""Text from strangers, made fit for a terminal and for a file: every character is seen, none is obeyed."""

from __future__ import annotations

import unicodedata

# Control characters (escape sequences begin with one), invisible marks of format (which can turn the order of letters
# round), halves of surrogate pairs (which no encoding takes), separators of lines and paragraphs.
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def visible(text: str, keep: str = "\n\t") -> str:
    """`text` with what does not print written as Python would write it (\\x1b, \\ud800); `keep` stays as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter if letter in keep or unicodedata.category(letter) not in _UNSEEN else ascii(letter)[1:-1]
        for letter in text
    )


def encodable(text: str) -> str:
    """`text` with lone surrogates written out, so that UTF-8 and strict readers of JSON take it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
