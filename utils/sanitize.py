"""`python -m utils.sanitize`: memory errors, races, bad barriers and launch errors in a workspace's kernels.

Everywhere: on the simulator, on the problem's small inputs (get_small_inputs in model.py, else get_inputs):
    race       every access checked: races in shared and device memory, out of bounds, uninitialised shared memory,
               misaligned vectors, divergent barriers, exits before a barrier, wrong warp masks, launch limits
    asan       AddressSanitizer: out of bounds, thread-local arrays and device variables included
    schedule   default, reverse and random orders of threads and blocks, results compared
With a GPU: compute-sanitizer's memcheck, racecheck, initcheck and synccheck as well, in the same table.

Exit codes: 0 nothing found, 1 something found, 2 cannot tell (a part could not run, or is not simulated).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from utils.present import console, record
from utils.present.options import positive
from utils.present.outcome import CANNOT_TELL, NO, YES, CannotTell, run
from utils.problem.workspace import ROOT, Workspace, find_workspace
from utils.sim.reports import KINDS, Finding
from utils.timing import kernels

MODES = ("race", "asan", "schedule")


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    workspace = find_workspace(options.workspace)
    modes = list(MODES) if options.mode == "all" else [options.mode] if options.mode in MODES else []
    findings: list[Finding] = []
    problems: list[str] = []
    launches: list[str] = []
    ran: list[str] = []
    if options.device in ("auto", "sim"):
        for mode in modes:
            result = _simulate(workspace, mode, options)
            ran.append(f"simulator/{mode}")
            findings += [_finding(each) for each in result["findings"]]
            launches += [name for name in result["launches"] if name not in launches]
            if result["error"]:
                problems.append(f"simulator/{mode}: {result['error']}")
    with_gpu = options.device == "gpu" or (options.device == "auto" and _has_gpu())
    if with_gpu and options.mode in ("all", "gpu"):
        looked, names = _device(workspace, options)
        launches += [name for name in names if name not in launches]
        for tool, found, problem in looked:
            ran.append(tool)
            findings += found
            if problem:
                problems.append(f"{tool}: {problem}")
    if not ran:
        raise CannotTell("nothing was run: --mode gpu needs a GPU")
    unsupported = [each for each in findings if each.kind == "unsupported"]
    problems += [f"{each.place}: {each.message}" for each in unsupported]
    findings = _merged([each for each in findings if each.kind != "unsupported"])
    if not launches and not problems:
        problems.append("no kernel was launched: there was nothing to check")
    code = NO if findings else CANNOT_TELL if problems else YES
    verdict = {YES: "CLEAN", NO: "FINDINGS", CANNOT_TELL: "INCOMPLETE"}[code]
    _show(findings, problems, ran, launches, code, simulated=not with_gpu)
    if options.json:
        reasons = [_sentence(each) for each in findings] + problems
        body = {
            "ran": ran,
            "kernels": launches,
            "findings": [each.record() for each in findings],
            "incomplete": problems,
        }
        settings = {
            "workspace": str(workspace.root),
            "mode": options.mode,
            "seeds": options.seeds,
            "full": options.full,
            "device": options.device,
        }
        record.write(
            options.json,
            record.envelope(
                "sanitize", verdict, code, reasons, simulated=not with_gpu, settings=settings, results=body
            ),
        )
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m utils.sanitize", description="Looks for memory errors, races and bad barriers."
    )
    parser.add_argument("--workspace", metavar="DIR", help="the workspace (default: the repository)")
    parser.add_argument("--mode", choices=("all", *MODES, "gpu"), default="all", help="what to run (default: all)")
    parser.add_argument(
        "--device",
        choices=("auto", "sim", "gpu"),
        default="auto",
        help="where to look (default: both where there is a GPU)",
    )
    parser.add_argument("--seeds", type=int, default=3, help="random schedules beside default and reverse (default: 3)")
    parser.add_argument("--full", action="store_true", help="the problem's full inputs, even where it has small ones")
    parser.add_argument("--timeout", type=positive, default=600.0, help="seconds for each run (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="write the record to FILE")
    return parser


def _simulate(workspace: Workspace, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    from utils.sim.build import build_simulated, environment

    build = "plain" if mode == "schedule" else mode
    module = build_simulated(workspace, build, say=lambda text: print(text, file=sys.stderr, flush=True))
    with console.progress(f"running on the simulator: {mode}"):
        return _child(workspace, module, build, options, environment(build))


def _child(
    workspace: Workspace, module: Path, mode: str, options: argparse.Namespace, extra: dict[str, str]
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        words = [*_child_words(workspace, mode, options, out), "--module", str(module)]
        return _run_child(words, out, options.timeout, extra)


def _run_child(words: Sequence[str], out: Path, timeout: float, extra: dict[str, str]) -> dict[str, Any]:
    """What the child wrote to `out`; of one that wrote nothing, an "error" that says how it ended."""
    error = f"the run took more than {timeout:g} s (--timeout)"
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env={**os.environ, **extra},
        )
        if out.exists():
            return json.loads(out.read_text())
        said = done.stderr.strip().splitlines()
        error = f"the process ended with code {done.returncode}: {said[-1] if said else 'it said nothing'}"
    return {"findings": [], "launches": [], "error": error}


def _child_words(workspace: Workspace, mode: str, options: argparse.Namespace, out: Path) -> list[str]:
    words = [
        "-m",
        "utils.sim.child",
        "--workspace",
        str(workspace.root),
        "--mode",
        mode,
        "--seeds",
        str(options.seeds),
        "--out",
        str(out),
    ]
    return [*words, "--full"] if options.full else words


def _has_gpu() -> bool:
    from utils.build.gpus import visible_gpus

    return bool(visible_gpus())


def _device(
    workspace: Workspace, options: argparse.Namespace
) -> tuple[list[tuple[str, list[Finding], str]], list[str]]:
    """What each tool found, or why it did not end; and the names of the kernels that ran, from a run without a tool."""
    from utils.sim import device

    device.find_compute_sanitizer()
    with tempfile.TemporaryDirectory() as folder:

        def words(out: Path) -> list[str]:
            return [*_child_words(workspace, "plain", options, out), "--device", "cuda"]

        def look(tool: str) -> tuple[str, list[Finding], str]:
            out = Path(folder) / f"{tool}.json"
            # torch's caching allocator would hide overruns between tensors.
            command = [sys.executable, *words(out)]
            code, text = device.run_tool(tool, command, ROOT, options.timeout, {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
            problem = device.failure(code, text)
            if code == 124:
                problem = f"took more than {options.timeout:g} s (--timeout)"
            # A tool that failed leaves errors of its own making among the calls.
            found = [each for each in device.parse(tool, text) if not problem or each.kind != "launch"]
            if not problem and not found:
                problem = str(json.loads(out.read_text())["error"]) if out.exists() else f"ended with code {code}"
            return f"compute-sanitizer/{tool}", found, problem

        def names() -> dict[str, Any]:
            out = Path(folder) / "names.json"
            return _run_child([*words(out), "--names"], out, options.timeout, {})

        # Small inputs leave room on the device for all of them at once.
        with (
            ThreadPoolExecutor(1 if options.full else 1 + len(device.TOOLS)) as pool,
            console.progress(f"running compute-sanitizer: {', '.join(device.TOOLS)}"),
        ):
            named = pool.submit(names)
            looked = list(pool.map(look, device.TOOLS))
        # Why a run ends badly is best told by the tools.
        if error := named.result()["error"]:
            looked.append(("without a tool", [], error))
        return looked, named.result()["launches"]


def _finding(raw: dict[str, Any]) -> Finding:
    triples = ("block", "thread", "other_block", "other_thread")
    settled: dict[str, Any] = {key: tuple(value) if key in triples and value else value for key, value in raw.items()}
    return Finding(**settled)


def _merged(findings: list[Finding]) -> list[Finding]:
    """One finding of each kind and place: what several modes see is told once, by the first that saw it."""
    seen: dict[tuple[str, str, str, int], Finding] = {}
    for each in findings:
        side = "device" if each.tool.startswith("compute-sanitizer") else "simulator"
        seen.setdefault((side, each.kind, each.file, each.line), each)
    return list(seen.values())


def _sentence(each: Finding) -> str:
    where = f" in {each.kernel}" if each.kernel else ""
    who = f", block {each.block}, thread {each.thread}" if each.thread else ""
    other = f"; the other access is at {_short(each.other_file)}:{each.other_line}" if each.other_file else ""
    return f"{_short(each.file)}:{each.line}: {each.kind}{where}{who}: {each.message}{other} [{each.tool}]"


def _short(file: str) -> str:
    path = Path(file)
    return (
        str(path.relative_to(ROOT)) if file and path.is_absolute() and path.is_relative_to(ROOT) else file or "unknown"
    )


def _kernel_list(names: Sequence[str]) -> str:
    """The workspace's kernels by name, those of libraries by number."""
    families = [kernels.family(name) for name in names]
    own = [
        name.replace("(anonymous namespace)::", "") for name, kind in zip(names, families, strict=True) if kind == "own"
    ]
    others = {kind: families.count(kind) for kind in families if kind != "own"}
    return ", ".join([*dict.fromkeys(own), *(f"{number} of {kind}" for kind, number in others.items())])


def _show(
    findings: list[Finding], problems: list[str], ran: list[str], launches: list[str], code: int, simulated: bool
) -> None:
    if findings:
        rows = []
        for each in findings:
            who = f"{each.block} {each.thread}" if each.thread else ""
            rows.append(
                [(each.kind, "fail"), f"{_short(each.file)}:{each.line}", each.kernel, who, each.message, each.tool]
            )
        console.table("", ["finding", "place", "kernel", "block, thread", "what", "found by"], rows)
        for kind in dict.fromkeys(each.kind for each in findings):
            if kind in KINDS:
                console.say(f"{kind}: {KINDS[kind]}", "note")
        for each in findings:
            if each.other_file:
                console.say(
                    f"{_short(each.file)}:{each.line}: the other access is at "
                    f"{_short(each.other_file)}:{each.other_line}",
                    "note",
                )
    for problem in problems:
        console.say(f"incomplete: {problem}", "warn")
    console.say(f"ran: {', '.join(ran)}; kernels: {_kernel_list(launches) or 'none seen'}", "note")
    label = " (simulated on the CPU; no GPU was involved)" if simulated else ""
    if code == YES:
        console.say(f"CLEAN{label}", "pass")
    elif code == NO:
        console.say(f"FINDINGS: {len(findings)}{label}", "fail")
    else:
        console.say(f"INCOMPLETE{label}", "warn")


if __name__ == "__main__":
    run(main)
