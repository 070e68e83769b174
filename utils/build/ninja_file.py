"""Ninja's file: its text from a list of steps, with every path escaped for the shell and for ninja.

Each step runs its compiler with all output going to `<output>.log`, so that the log of one file is never mixed with
another's and is still there when that file needs no compiling (the resource table is read from it).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One command: its output, what it reads, and what it is called in the progress line.

    `depends` are further inputs that are no arguments. `depfile` is where the compiler lists the headers it read.
    `precompiled` names the set of precompiled headers that fits. The shell adds the header if WORKBENCH_PCH_<set> names
    one: it comes and goes without the command, which ninja compares, being another.
    """

    output: str
    inputs: tuple[str, ...]
    command: tuple[str, ...]
    title: str
    depends: tuple[str, ...] = ()
    depfile: str = ""
    precompiled: str = ""

    @property
    def log(self) -> str:
        return f"{self.output}.log"


def pch_variable(kind: str) -> str:
    """The environment variable that names the precompiled header of one set while ninja runs."""
    return f"WORKBENCH_PCH_{kind.upper()}"


def escape_path(path: str) -> str:
    """`path` as ninja reads it in a build line."""
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def escape_value(text: str) -> str:
    """`text` as ninja reads it in the value of a variable."""
    return text.replace("$", "$$")


def text(steps: Sequence[Step], build_folder: str) -> str:
    """The whole ninja file."""
    lines = [
        "# Written by utils/build at every build; edits are lost.",
        "ninja_required_version = 1.5",
        f"builddir = {escape_path(build_folder)}",
        "",
        "rule step",
        "  command = $step_command",
        "  description = $step_title",
        "",
        "rule step_with_headers",
        "  command = $step_command",
        "  description = $step_title",
        "  depfile = $step_depfile",
        "",
    ]
    for step in steps:
        rule = "step_with_headers" if step.depfile else "step"
        inputs = " ".join(escape_path(path) for path in step.inputs)
        depends = "".join(f" {escape_path(path)}" for path in step.depends)
        lines.append(f"build {escape_path(step.output)}: {rule} {inputs}{' |' + depends if depends else ''}")
        variable = pch_variable(step.precompiled)
        header = f' ${{{variable}:+-include "${variable}"}}' if step.precompiled else ""
        command = f"{shlex.join(step.command)}{header} > {shlex.quote(step.log)} 2>&1"
        lines.append(f"  step_command = {escape_value(command)}")
        lines.append(f"  step_title = {escape_value(step.title)}")
        if step.depfile:
            lines.append(f"  step_depfile = {escape_value(step.depfile)}")
        lines.append("")
    lines.append(f"default {' '.join(escape_path(step.output) for step in steps[-1:])}")
    return "\n".join(lines) + "\n"


def headers_of(depfile_text: str) -> list[str]:
    """The files a compiler listed in a depfile (a make rule), without the target."""
    joined = depfile_text.replace("\\\n", " ")
    _, _, listed = joined.partition(": ")
    names, name, position = [], "", 0
    while position < len(listed):
        character = listed[position]
        following = listed[position + 1] if position + 1 < len(listed) else ""
        if character == "\\" and following in (" ", "#", "\\"):
            name += following
            position += 1
        elif character == "$" and following == "$":
            name += "$"
            position += 1
        elif character.isspace():
            names.append(name)
            name = ""
        else:
            name += character
        position += 1
    names.append(name)
    return [each for each in names if each]
