"""A rule, a breach of one, and which breaches count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Rule:
    """One rule. `policy` rules are the project's taste (relaxed mode only warns); the others guard the verdict."""

    id: str
    sentence: str
    evidence: str
    mend: str
    policy: bool = True


@dataclass(frozen=True)
class Violation:
    """One breach: `rule` is its id, `sentence` what happened, `evidence` the text or symbol that shows it."""

    rule: str
    sentence: str
    path: Path | None
    line: int | None
    evidence: str
    mend: str

    @property
    def where(self) -> str:
        """`file:line`, as short as is clear."""
        if self.path is None:
            return ""
        return f"{self.path.name}:{self.line}" if self.line else self.path.name

    @property
    def policy(self) -> bool:
        return RULES[self.rule].policy

    def as_dict(self) -> dict[str, Any]:
        record = asdict(self)
        record["path"] = None if self.path is None else str(self.path)
        record["policy"] = self.policy
        return record


RULES: dict[str, Rule] = {}


def rule(id: str, sentence: str, evidence: str, mend: str, policy: bool = True) -> Rule:
    """Declares a rule; each rule module does so once, at its top."""
    made = Rule(id, sentence, evidence, mend, policy)
    RULES[id] = made
    return made


def split(violations: Iterable[Violation], mode: str = "strict") -> tuple[list[Violation], list[Violation]]:
    """(failures, warnings) under `mode`, "strict" or "relaxed"."""
    failures: list[Violation] = []
    warnings: list[Violation] = []
    for violation in violations:
        (warnings if mode == "relaxed" and violation.policy else failures).append(violation)
    return failures, warnings
