"""Are the files well formed and within the rules? Needs no GPU.

    python -m utils.check                       the workspace here: model.py, model_new.py, kernels/, the rules
    python -m utils.check --workspace DIR       another workspace
    python -m utils.check problem.py            a problem file on its own
    python -m utils.check problem.py --fix      ... and mend what can be mended mechanically, showing the change
    python -m utils.check model.py --solution solution.py

Exit code 0: yes (warnings are allowed), 1: no, 2: cannot tell. docs/formats.md describes the files, docs/rules.md the
rules.
"""

from __future__ import annotations

import argparse
import ast
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from utils.present import console, record
from utils.present.options import positive
from utils.present.outcome import NO, YES, CannotTell, run
from utils.problem.checks.finding import FAIL, PASS, SKIP, WARN, Finding
from utils.problem.checks.fix import fix_problem, keep_original, write_fix
from utils.problem.checks.limits import findings_in_child
from utils.problem.checks.problem_file import free_memory, settled
from utils.problem.checks.solution_file import SOLUTION_CHECKS, solution_findings
from utils.problem.checks.source import Source, source_findings
from utils.problem.solution import Solution, find_solution, parse
from utils.problem.workspace import Workspace, find_workspace
from utils.rules import Violation, split, static_violations

# Rounds of --fix: each kind of mend needs one at most.
_MOST_MENDS = 4
_MARK = {PASS: ("pass", "pass"), WARN: ("warn", "warn"), FAIL: ("FAIL", "fail"), SKIP: ("-", "note")}


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    problem, solution = _what(options)
    device = _device(options.device)
    memory = int(options.memory_limit * 2**30) if options.memory_limit else free_memory() * 3 // 4
    results: dict[str, Any] = {"problem": None, "solution": None, "violations": []}
    failed = warned = 0
    reasons: list[str] = []

    if problem is not None:
        findings = _check_problem(problem, device, memory, options.time_limit)
        if options.fix:
            findings = _fix(
                problem, findings, results, lambda: _check_problem(problem, device, memory, options.time_limit)
            )
        _show(f"problem {problem}", findings, problem)
        results["problem"] = {"path": problem, "checks": [f.as_dict() for f in findings]}
        failed += sum(f.status == FAIL for f in findings)
        warned += sum(f.status == WARN for f in findings)
        reasons += [f"{problem.name}: {f.sentence}" for f in findings if f.status == FAIL]

    if solution is not None:
        findings = _check_solution(solution, problem, memory, options.time_limit)
        failures, warnings = _rules(solution, problem, options.rules)
        _show(f"solution {solution.path}", findings, solution.path)
        _show_rules(failures, warnings)
        results["solution"] = {"path": solution.path, "kind": solution.kind, "checks": [f.as_dict() for f in findings]}
        results["violations"] = [{**v.as_dict(), "counts": v in failures} for v in (*failures, *warnings)]
        failed += sum(f.status == FAIL for f in findings) + len(failures)
        warned += sum(f.status == WARN for f in findings) + len(warnings)
        reasons += [f"{solution.path.name}: {f.sentence}" for f in findings if f.status == FAIL]
        reasons += [f"{v.where}: {v.sentence} [{v.rule}]" for v in failures]

    code = NO if failed else YES
    verdict = "NO" if failed else "YES"
    console.say(f"{verdict}: {_count(failed, 'failure')}, {_count(warned, 'warning')}", "fail" if failed else "pass")
    if options.json:
        settings = {
            "rules": options.rules,
            "device": device,
            "time_limit": options.time_limit,
            "memory_limit": memory,
            "fix": options.fix,
        }
        record.write(
            options.json,
            record.envelope(
                "check", verdict, code, reasons, settings=settings, environment=_environment(), results=results
            ),
        )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m utils.check", description="Check problem and solution files, and the rules."
    )
    parser.add_argument(
        "file", nargs="?", help="a problem file (or a solution file); the workspace's model.py by default"
    )
    parser.add_argument("--workspace", help="folder with model.py, model_new.py and kernels/ (default: the repository)")
    parser.add_argument(
        "--solution", help="a solution file: model_new.py, or a solution.py with load_inline or Triton kernels"
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="mend the problem file where that is mechanical; shows the change, keeps the original as .orig",
    )
    parser.add_argument(
        "--rules", choices=("strict", "relaxed"), default="strict", help="relaxed: policy rules only warn"
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda", "auto"),
        default="auto",
        help="where the model is run besides the CPU (default: auto)",
    )
    parser.add_argument(
        "--time-limit",
        type=positive,
        default=120.0,
        metavar="SECONDS",
        help="for everything the file itself does (default: 120)",
    )
    parser.add_argument(
        "--memory-limit",
        type=positive,
        metavar="GIB",
        help="memory the file may take (default: three quarters of what is free)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the full record to FILE")
    return parser


def _what(options: argparse.Namespace) -> tuple[Path | None, Solution | None]:
    """The problem file and the solution the options ask about; either may be None."""
    named = Path(options.file).expanduser().resolve() if options.file else None
    if named is not None and not named.is_file():
        raise CannotTell(f"there is no file {options.file}")
    if named is not None and options.solution is None and _is_solution(named):
        workspace = find_workspace(options.workspace) if options.workspace else Workspace(named.parent)
        return (workspace.model if workspace.model.is_file() else None), find_solution(workspace, named)
    workspace = find_workspace(options.workspace)
    if named is None:
        problem: Path | None = workspace.model if workspace.model.is_file() else None
        if problem is None and options.solution is None:
            raise CannotTell(f"there is no model.py in {workspace.root}; name a problem file, or give --workspace DIR")
    else:
        problem = named
    if options.solution is not None:
        return problem, find_solution(workspace if named is None else None, options.solution)
    if named is not None:
        return problem, None
    present = workspace.model_new.is_file() or (workspace.root / "solution.py").is_file()
    return problem, find_solution(workspace) if present else None


def _is_solution(path: Path) -> bool:
    try:
        names = {node.name for node in parse(path).body if isinstance(node, ast.ClassDef)}
    except CannotTell:
        return False
    return "ModelNew" in names and "Model" not in names


def _device(wanted: str) -> str:
    """cpu or cuda. Whether there is a GPU is asked of the driver's device files, which costs nothing."""
    present = Path("/dev/nvidiactl").exists()
    if wanted == "cuda" and not present:
        raise CannotTell("--device cuda, but there is no NVIDIA GPU here; leave it out to check on the CPU")
    return "cuda" if wanted in {"cuda", "auto"} and present else "cpu"


def _check_problem(path: Path, device: str, memory: int, limit: float) -> list[Finding]:
    try:
        still = list(source_findings(Source(path, parse(path))))
    except CannotTell:
        # The child says it in its words, with the line.
        still = []
    task = {"kind": "problem", "path": str(path), "device": device, "memory": memory, "seconds": limit / 2}
    with console.progress(f"checking {path.name}"):
        found = findings_in_child(task, limit)
    return settled([*still, *found])


def _check_solution(solution: Solution, problem: Path | None, memory: int, limit: float) -> list[Finding]:
    findings = list(solution_findings(solution, problem))
    if problem is not None and not any(f.status == FAIL for f in findings):
        task = {
            "kind": "solution",
            "path": str(solution.path),
            "problem": str(problem),
            "device": "cpu",
            "memory": memory,
            "seconds": limit,
        }
        with console.progress(f"constructing ModelNew of {solution.path.name}"):
            findings += findings_in_child(task, limit)
    known = {finding.check: finding for finding in findings}
    return [known.get(name) or Finding(name, SKIP, "not tried") for name in SOLUTION_CHECKS]


def _rules(solution: Solution, problem: Path | None, mode: str) -> tuple[list[Violation], list[Violation]]:
    return split(static_violations(solution, problem), mode)


def _fix(
    path: Path, findings: list[Finding], results: dict[str, Any], check: Callable[[], list[Finding]]
) -> list[Finding]:
    """Mends what can be mended, and what the checks find that could only then be tried; what they find at last."""
    fix = fix_problem(path, findings)
    if fix is None:
        console.say("nothing to mend mechanically", "note")
        return findings
    backup = keep_original(path)
    done: list[str] = []
    diffs: list[str] = []
    while fix is not None and len(diffs) < _MOST_MENDS:
        console.say(fix.diff())
        for sentence in fix.done:
            console.say(f"mended: {sentence}", "pass")
        write_fix(fix)
        done += fix.done
        diffs.append(fix.diff())
        findings = check()
        fix = fix_problem(path, findings)
    console.say(f"the original is kept as {backup.name}", "note")
    results["fixed"] = {"done": done, "backup": backup, "diff": "".join(diffs)}
    return findings


def _show(title: str, findings: Sequence[Finding], path: Path) -> None:
    rows = []
    for finding in findings:
        where = f"{path.name}:{finding.line}" if finding.line else ""
        rows.append([finding.check, _MARK[finding.status], where, finding.sentence])
        if finding.mend and finding.status in {WARN, FAIL}:
            rows.append(["", "", "", (f"-> {finding.mend}", "note")])
    console.table(title, ["check", "", "line", ""], rows)
    console.say("")


def _show_rules(failures: Sequence[Violation], warnings: Sequence[Violation]) -> None:
    if not failures and not warnings:
        console.say("rules: none broken", "pass")
        return
    rows = []
    for status, violations in ((FAIL, failures), (WARN, warnings)):
        for violation in violations:
            rows.append([violation.rule, _MARK[status], violation.where, violation.sentence])
            rows.append(["", "", "", (violation.evidence, "note")])
            rows.append(["", "", "", (f"-> {violation.mend}", "note")])
    console.table("rules", ["rule", "", "line", ""], rows)
    console.say("")


def _environment() -> dict[str, Any]:
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = None
    return {
        "python": sys.version.split()[0],
        "torch": torch,
        "machine": platform.machine(),
        "system": platform.system(),
    }


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    run(main)
