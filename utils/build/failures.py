"""One thing that keeps a module from being built, in the form every part of the build reports it."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Failure:
    """What is wrong. `place` is file:line where there is one, `message` the compiler's words or ours, `detail` the
    lines of the compiler around it; `meaning` and `remedy` are sentences for the author."""

    message: str
    place: str = ""
    meaning: str = ""
    remedy: str = ""
    detail: str = ""

    def record(self) -> dict[str, str]:
        return asdict(self)

    def lines(self) -> list[str]:
        """The failure as lines for a person."""
        head = f"{self.place}: {self.message}" if self.place else self.message
        lines = [head, *(f"    {line}" for line in self.detail.splitlines())]
        if self.meaning:
            lines.append(f"  what it means: {self.meaning}")
        if self.remedy:
            lines.append(f"  what to do:    {self.remedy}")
        return lines
