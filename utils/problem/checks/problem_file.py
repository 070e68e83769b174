"""All checks of one problem file, in this process: what its text says first, then what running it shows.

`python -m utils.check` runs this in a child with limits (child.py); call it directly only on files you trust.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from utils.present.outcome import CannotTell
from utils.problem.checks.finding import FAIL, PASS, PROBLEM_CHECKS, SKIP, WARN, Finding
from utils.problem.checks.source import Source, source_findings
from utils.problem.solution import parse

_WEIGHT = {FAIL: 3, WARN: 2, PASS: 1, SKIP: 0}


def check_problem(
    path: str | Path,
    *,
    device: str = "cpu",
    memory: int | None = None,
    seconds: float = 60.0,
    said: Callable[[Finding], None] | None = None,
) -> list[Finding]:
    """Every check of PROBLEM_CHECKS, in that order; those that could not be put are skipped with the reason.

    device    "cpu", or "cuda" to run the model there too
    memory    bytes the problem may take (default: three quarters of what is free)
    seconds   time for the probes of meaning; what it does not suffice for is skipped by name
    said      called with each finding as it is made
    """
    return settled(findings_of(Path(path).resolve(), device, memory or free_memory() * 3 // 4, seconds), said)


def findings_of(
    path: Path, device: str, memory: int, seconds: float, stage: Callable[[str], None] = lambda said: None
) -> Iterator[Finding]:
    """Findings as they are made; the same check may be answered more than once (`settled` keeps the graver answer)."""
    try:
        source = Source(path, parse(path))
    except CannotTell as error:
        line = getattr(getattr(error, "__context__", None), "lineno", None)
        yield Finding("python", FAIL, str(error), line, "mend the syntax")
        return
    yield from source_findings(source)
    # Only now: the text alone has its answers, and importing torch takes seconds.
    from utils.problem.checks.running import running_findings

    yield from running_findings(source, device, memory, seconds, stage)


def settled(findings: Iterable[Finding], said: Callable[[Finding], None] | None = None) -> list[Finding]:
    """One finding per check, the gravest first said, in the order of PROBLEM_CHECKS."""
    kept: dict[str, Finding] = {}
    blocked = "not tried"
    for finding in findings:
        if said is not None:
            said(finding)
        known = kept.get(finding.check)
        if known is None or _WEIGHT[finding.status] > _WEIGHT[known.status] or finding.status == known.status == PASS:
            kept[finding.check] = finding
        if finding.status == SKIP and finding.check == "runs":
            blocked = "not tried, because the model could not be run here"
        if finding.status == FAIL:
            blocked = f"not tried, because {finding.check} failed"
    return [kept.get(name) or Finding(name, SKIP, blocked) for name in PROBLEM_CHECKS]


def free_memory() -> int:
    """Bytes of memory this machine could still give: MemAvailable of Linux, or the control group's rest if smaller."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if limit != "max":
            free = min(free, int(limit) - used)
    except (OSError, ValueError):
        pass
    return max(free, 1 << 28)
