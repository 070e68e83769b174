"""compile_commands.json: how each source is compiled, in the form clangd and other editors read.

Host files are listed with their own command. For .cu files the command is clang's equivalent of nvcc's, since clangd
does not know nvcc's flags.
"""

from __future__ import annotations

import json

from utils.build import flags
from utils.build.ninja_file import Step
from utils.build.plan import Plan


def compile_commands(plan: Plan) -> str:
    """The text of compile_commands.json for `plan`."""
    entries = []
    for step in plan.steps:
        if not step.depfile:
            continue
        entries.append(
            {
                "directory": str(plan.workspace.root),
                "file": step.inputs[0],
                "arguments": _clang(plan, step) if step.inputs[0].endswith(".cu") else list(step.command),
                "output": step.output,
            }
        )
    return json.dumps(entries, indent=2) + "\n"


def _clang(plan: Plan, step: Step) -> list[str]:
    newest = max(plan.architectures)
    folders = flags.cuda_include_folders(plan.torch, plan.nvcc)
    return [
        "clang++",
        *("-x", "cuda", flags.STANDARD, f"--cuda-gpu-arch={newest.sm}", f"--cuda-path={plan.nvcc.root}"),
        *flags.own_include_flags(flags.own_include_folders(plan.workspace)),
        *(flag for folder in folders for flag in ("-isystem", str(folder))),
        *("-c", step.inputs[0], "-o", step.output),
    ]
