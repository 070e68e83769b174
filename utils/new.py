"""A fresh workspace from a problem file.

    python -m utils.new DIR --problem FILE [--name NAME]

Copies the problem to DIR/model.py and writes model_new.py with Model's constructor, and one pair of kernel files whose
arguments are the model's real inputs and weights. The result compiles at once; it computes nothing yet (the kernel
writes NaN), so verification says no until the kernel is written.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from utils.present import console
from utils.present.outcome import YES, CannotTell, run
from utils.problem.checks.limits import findings_in_child
from utils.problem.checks.problem_file import free_memory
from utils.problem.skeleton import binding_text, cuda_text, identifier, model_text, plan
from utils.problem.solution import parse


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m utils.new", description="A fresh workspace from a problem file.")
    parser.add_argument("folder", help="the workspace to make; must not exist or be empty")
    parser.add_argument("--problem", required=True, help="the problem file; copied to model.py")
    parser.add_argument("--name", help="name of the kernel (default: from the problem file or the folder)")
    options = parser.parse_args(argv)
    folder, problem = Path(options.folder).expanduser().resolve(), Path(options.problem).expanduser().resolve()
    name = _kernel_name(options.name, problem, folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CannotTell(f"{folder} is there already and not empty; name a new folder, nothing was written")
    parse(problem)
    with console.progress(f"reading {problem.name}"):
        facts = _facts(problem)
    source = problem.read_text(encoding="utf-8")
    made = plan(name, facts, source)
    files = {
        "model.py": source,
        "model_new.py": model_text(made),
        f"kernels/{name}.cu": cuda_text(made),
        f"kernels/{name}_binding.cpp": binding_text(made),
    }
    _write(folder, files)
    shown = os.path.relpath(folder)
    console.say(f"made {shown}", "pass")
    for path in files:
        console.say(f"  {path}")
    console.say(f"next: write kernels/{name}.cu, then")
    for command in ("bash utils/compile.sh", "python -m utils.check", "python -m utils.verification"):
        console.say(f"  {command} --workspace {shown}")
    return YES


def _kernel_name(asked: str | None, problem: Path, folder: Path) -> str:
    if asked is not None:
        if identifier(asked) != asked:
            raise CannotTell(
                f"--name {asked} is not usable as a function name in C++ and Python; try {identifier(asked)}"
            )
        return asked
    stem = problem.stem if problem.stem not in {"model", "problem", "solution"} else folder.name
    # A leading number (of a problem list) says nothing in a function name.
    plain = stem.lstrip("0123456789_- ").lower()
    return identifier(plain or "kernel")


def _facts(problem: Path) -> dict[str, Any]:
    task = {"kind": "describe", "path": str(problem), "device": "cpu", "memory": free_memory() * 3 // 4, "seconds": 120}
    for finding in findings_in_child(task, 180.0):
        if finding.check == "describe":
            return finding.facts
        raise CannotTell(
            f"{problem.name} cannot be used as it is: {finding.sentence}; see: python -m utils.check {problem}"
        )
    raise CannotTell(f"{problem.name} cannot be used as it is; see: python -m utils.check {problem}")


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # "x": never over anything that is there.
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise CannotTell(f"cannot write in {folder}: {error.strerror}") from None


if __name__ == "__main__":
    run(main)
