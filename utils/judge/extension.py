"""The built module a workspace's solution needs: that it is there, fresh, untouched, and fit for the device."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.judge.staging import digest
from utils.present.outcome import CannotTell, No
from utils.problem.loader import module_path
from utils.problem.solution import Solution


@dataclass(frozen=True)
class Extension:
    """A module to stage, and the build's own record of it."""

    path: Path
    facts: dict[str, Any] = field(default_factory=dict)
    simulated: bool = False


def find_extension(solution: Solution) -> Extension | None:
    """The workspace's built module for an extension solution, None for the other kinds.

    Raises CannotTell when it is not built or older than its sources, No when it is not the file the build made.
    """
    if solution.kind != "extension" or solution.workspace is None:
        return None
    workspace = solution.workspace
    compile_it = f"bash utils/compile.sh --workspace {workspace.root}"
    path = module_path(workspace)
    if not path.is_file():
        raise CannotTell(f"{path.name} is not built in {workspace.root}; run: {compile_it}")
    try:
        facts = json.loads((workspace.build / "build_facts.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise CannotTell(f"{path} has no record of what it was built from; build it anew: {compile_it}") from None
    from utils.build.digest import sources_digest

    if facts.get("sources_sha256") != sources_digest(workspace):
        raise CannotTell(
            f"{path.name} is older than the sources in {workspace.root}: they changed since it was built; "
            f"run: {compile_it}"
        )
    if facts.get("module_sha256") != digest(path):
        raise No(
            f"{path} is not the file that the build made from the sources (its digest differs from "
            f"build/build_facts.json); build it anew: {compile_it}"
        )
    return Extension(path, facts)


def simulated_extension(solution: Solution) -> Extension | None:
    """The same for the simulator, which builds on demand. Raises CannotTell where it cannot serve the solution."""
    if solution.kind != "extension" or solution.workspace is None:
        raise CannotTell(
            f"a {solution.kind} solution has no kernels that can be simulated: only workspaces with kernels/ "
            "can; use a GPU, or --device cpu for plain Python"
        )
    try:
        from utils.sim.build import build_simulated
    except ImportError:
        raise CannotTell(
            "there is no GPU here and the simulator is not installed; run on a machine with an NVIDIA GPU"
        ) from None
    return Extension(build_simulated(solution.workspace), simulated=True)


def check_covers(extension: Extension | None, capability: tuple[int, int], device_name: str) -> None:
    """Raises CannotTell when the module holds no code for the device."""
    names = list((extension.facts if extension else {}).get("architectures", []))
    if not names:
        return
    from utils.build.architectures import parse_arch_list, uncovered

    if uncovered(parse_arch_list(" ".join(names)), [capability]):
        built = ", ".join(f"sm_{name.replace('.', '')}" for name in names)
        number = f"{capability[0]}.{capability[1]}"
        raise CannotTell(
            f"built for {built}, the device ({device_name}) is sm_{capability[0]}{capability[1]}; rebuild "
            f"with {number}: TORCH_CUDA_ARCH_LIST={number} bash utils/compile.sh"
        )
