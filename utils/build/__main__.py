"""`python -m utils.build`: the command behind `bash utils/compile.sh`.

Exit 0: built, or up to date. 1: the sources do not build. 2: the environment is not fit.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from utils.build.builder import FAILED, UP_TO_DATE, BuildResult, build
from utils.present.outcome import CANNOT_TELL, NO, YES, CannotTell, Outcome, run
from utils.problem.workspace import Workspace, find_workspace


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _stopped)
    try:
        workspace = find_workspace(options.workspace)
        if importlib.util.find_spec("rich") is None:
            raise CannotTell(f"{sys.executable} has no rich, which draws the tables; pip install -r requirements.txt")
        if options.sim:
            return _simulated(workspace, options)
        result = build(workspace, _progress)
    except Outcome as outcome:
        _write(options, "CANNOT_TELL" if outcome.code == CANNOT_TELL else FAILED, outcome.code, [str(outcome)])
        raise
    _show(result, workspace, options.verbose)
    code = YES if result.ok else NO
    reasons = [f"{each.place}: {each.message}" if each.place else each.message for each in result.failures]
    _write(options, result.verdict, code, reasons + result.warnings + result.notes, result)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bash utils/compile.sh",
        description="Builds cuda_extension from binding.cpp and the workspace's kernels/.",
        epilog="Environment: "
        "TORCH_CUDA_ARCH_LIST (9.0, '8.0;9.0+PTX', native, Hopper, ...; unset: the GPUs present, else 9.0), "
        "MAX_JOBS, CUDA_HOME, CXX, NVCC_CCBIN, KERNEL_WORKBENCH_PYTHON, KERNEL_WORKBENCH_PCH=0. "
        "Exit status: 0 built or up to date, 1 the sources do not build, 2 the environment is not fit.",
    )
    parser.add_argument(
        "--workspace", metavar="DIR", help="folder with model.py, model_new.py and kernels/ (default: the repository)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the outcome as a JSON record")
    parser.add_argument("--verbose", action="store_true", help="show every command and all that the compilers say")
    parser.add_argument(
        "--sim",
        nargs="?",
        const="plain",
        choices=("plain", "asan", "race"),
        help="build the CPU simulation of the module instead; asan and race add checks",
    )
    return parser


def _stopped(number: int, frame: Any) -> None:
    # As Ctrl-C does: the build removes a module that is no longer current, and ends its compilers.
    raise KeyboardInterrupt


def _progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
    _load_console()


@functools.cache
def _load_console() -> None:
    """Loads what draws the tables, which takes a tenth of a second, while the compilers run."""
    threading.Thread(target=importlib.import_module, args=("utils.present.console",), daemon=True).start()


def _simulated(workspace: Workspace, options: argparse.Namespace) -> int:
    try:
        from utils.sim.build import build_simulated
    except ImportError as error:
        raise CannotTell(f"the simulator is not there: {error}; build without --sim") from None
    module = build_simulated(workspace, options.sim, _progress)
    print(f"built {module} (simulated on the CPU, mode {options.sim})")
    _write(options, "BUILT", YES, [], module=module)
    return YES


def _write(
    options: argparse.Namespace,
    verdict: str,
    code: int,
    reasons: list[str],
    result: BuildResult | None = None,
    module: Path | None = None,
) -> None:
    if not options.json:
        return
    from utils.present.record import envelope, write

    results: dict[str, Any] = {"module": module} if module else {}
    if result:
        results = {
            "module": result.module if result.ok else None,
            "seconds": result.seconds,
            "compiled": result.compiled,
            "kernels": result.registered,
            "resources": [each.record() for each in result.resources],
            "failures": [each.record() for each in result.failures],
            "warnings": result.warnings,
            "notes": result.notes,
            "log": result.log,
        }
    settings = {"workspace": options.workspace or ".", "verbose": options.verbose, "sim": options.sim}
    facts = result.facts if result else {}
    write(
        options.json,
        envelope(
            "compile",
            verdict,
            code,
            reasons,
            simulated=bool(options.sim),
            settings=settings,
            environment=facts,
            results=results,
        ),
    )


def _show(result: BuildResult, workspace: Workspace, verbose: bool) -> None:
    module = result.module.name
    if result.verdict == UP_TO_DATE and not verbose:
        # The common case, kept free of everything that takes time to load.
        for text in result.warnings:
            print(f"warning: {text}")
        architectures = ", ".join(result.facts["architectures"])
        print(f"up to date: {module} ({len(result.registered)} kernels, {architectures}), {result.seconds:.2f} s")
        return
    from utils.present.console import say, table

    if verbose and result.log.exists():
        print(result.log.read_text(errors="replace"))
    for text in result.notes:
        say(f"note: {text}", "note")
    if not result.ok:
        for failure in result.failures:
            head, *rest = failure.lines()
            say(head, "fail")
            for line in rest:
                say(line)
        if len(result.failures) > 1:
            say(f"{len(result.failures)} failures, the first of each file")
        say(f"not built: {module} ({result.seconds:.1f} s); whole log: {result.log}", "fail")
        return
    if result.resources:
        columns = ["kernel", "file", "arch", "registers", "spill stores", "spill loads", "stack", "static shared"]
        rows = []
        for each in result.resources:
            spill = "warn" if each.spills else None
            sizes = [(f"{size} B" if size else "0", spill) for size in (each.spill_stores, each.spill_loads)]
            rest = [f"{size} B" if size else "0" for size in (each.stack, each.shared)]
            rows.append(
                [each.kernel, each.file.removeprefix("kernels/"), each.architecture, each.registers, *sizes, *rest]
            )
        table("", columns, rows, right=columns[3:])
    spilling = [each for each in result.resources if each.spills]
    for each in spilling:
        size = each.spill_stores + each.spill_loads
        say(
            f"warning: {each.kernel} spills to local memory ({size} B per thread, {each.registers} registers); "
            "smaller tiles, fewer live values or another __launch_bounds__ would keep them",
            "warn",
        )
    for text in result.warnings:
        say(f"warning: {text}", "warn")
    architectures = ", ".join(result.facts["architectures"])
    verb = "built" if result.verdict != UP_TO_DATE else "up to date:"
    say(
        f"{verb} {module} ({len(result.registered)} kernels, {architectures}) in {result.seconds:.1f} s, "
        f"{len(result.compiled)} steps",
        "pass",
    )


run(main)
