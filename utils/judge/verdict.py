"""Findings, and the verdict they add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

FAIL, WARN, NOTE = "fail", "warn", "note"


@dataclass(frozen=True)
class Finding:
    """One thing the judge found. `kind` is a word for programs, `sentence` is for a person.

    A "fail" decides the verdict; a "warn" says that something is unusual and is no reason to refuse; a "note" informs.
    """

    level: str
    kind: str
    sentence: str
    trial: int | None = None
    call: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def where(self) -> str:
        if self.trial is None:
            return ""
        return f"trial {self.trial}" + (f" call {self.call}" if self.call is not None else "")

    def __str__(self) -> str:
        return f"{self.where}: {self.sentence}" if self.where else self.sentence


class Findings:
    """All findings, in the order in which they were made; the same sentence is kept once."""

    def __init__(self) -> None:
        self.all: list[Finding] = []
        self._seen: set[tuple[str, str]] = set()

    def add(self, level: str, kind: str, sentence: str, **where: Any) -> None:
        # A finding is one line: words of the solution in it must not look like a line of their own.
        sentence = " ".join(sentence.splitlines())
        if (kind, sentence) not in self._seen:
            self._seen.add((kind, sentence))
            self.all.append(Finding(level, kind, sentence, **where))

    def fail(self, kind: str, sentence: str, **where: Any) -> None:
        self.add(FAIL, kind, sentence, **where)

    def warn(self, kind: str, sentence: str, **where: Any) -> None:
        self.add(WARN, kind, sentence, **where)

    def note(self, kind: str, sentence: str, **where: Any) -> None:
        self.add(NOTE, kind, sentence, **where)

    def of(self, level: str) -> list[Finding]:
        return [finding for finding in self.all if finding.level == level]

    @property
    def failed(self) -> bool:
        return any(finding.level == FAIL for finding in self.all)


# The cause comes before its effects: a reader of only the first reason should read the one to mend first.
_ORDER = (
    "missing_module",
    "no_image",
    "import",
    "state_dict",
    "gpu_fault",
    "crash",
    "exit",
    "timeout",
    "memory",
    "protocol",
    "children",
    "launch",
    "exception",
    "structure",
    "stream_order",
    "unwritten",
    "stale",
    "trivial",
    "race",
    "values",
    "buffers",
    "mutated_input",
    "aliased_output",
    "overwritten_result",
    "overrun",
    "strided",
    "misaligned",
    "hint",
    "rule",
)


def reasons(findings: Iterable[Finding]) -> list[str]:
    """Sentences of the failures, causes before effects; a kind that failed on many calls is told once and counted."""
    grouped: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.level == FAIL:
            grouped.setdefault(finding.kind, []).append(finding)
    ranked = sorted(grouped, key=lambda kind: _ORDER.index(kind) if kind in _ORDER else len(_ORDER))
    told = []
    for kind in ranked:
        first, *more = grouped[kind]
        if kind == "rule":
            told += [str(finding) for finding in grouped[kind]]
        else:
            told.append(str(first) + (f" (and {len(more)} more like it)" if more else ""))
    return told
