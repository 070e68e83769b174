"""What a build is about to do: the tools, architectures, sources and flags, and from them the steps for ninja.

Making a plan runs no compiler but to ask for its version, and not even that when the answer is remembered.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from utils.build import flags, gpus, linker, pch
from utils.build.architectures import VARIABLE, Architecture, check_supported, parse_arch_list, uncovered
from utils.build.ninja_file import Step
from utils.build.sources import Sources, find_sources
from utils.build.toolchain import (
    MODULE,
    HostCompiler,
    Libraries,
    Nvcc,
    Torch,
    check_versions,
    describe_host_compiler,
    describe_nvcc,
    find_host_compiler,
    find_libraries,
    find_nvcc,
    find_python_torch,
    idle_cuda_home,
)
from utils.problem.workspace import ROOT, Workspace

# Rises when what a build makes changes in a way that the flags do not show.
FORMAT = 2

# nvcc hands these characters of a path to a shell unquoted; spaces, brackets and non-ASCII letters are fine.
_NVCC_BREAKS = re.compile(r"[$\"'`\\]")

NVCC_SCRIPT = ROOT / "utils/build/nvcc.sh"
HALVES_SCRIPT = ROOT / "utils/build/halves.py"
FACTS_SOURCE = "build/facts.cpp"
STAMP = "build/toolchain.stamp"


@dataclass(frozen=True)
class Tools:
    """torch and the two compilers, with their versions."""

    torch: Torch
    nvcc: Nvcc
    compiler: HostCompiler

    @property
    def identity(self) -> list[str]:
        """Changes when one of them is replaced, even in its place."""
        return [
            f"nvcc {self.nvcc.version} {_identity(self.nvcc.path)}",
            f"cxx {self.compiler.version} {_identity(self.compiler.path)}",
            f"torch {self.torch.version} {_identity(self.torch.root / 'version.py')}",
        ]


@dataclass(frozen=True)
class Plan:
    """Everything that decides what comes out of a build but the contents of the files."""

    workspace: Workspace
    tools: Tools
    libraries: Libraries
    architectures: tuple[Architecture, ...]
    sources: Sources
    steps: tuple[Step, ...]
    key: str
    gpus: tuple[tuple[int, int], ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    links: Mapping[str, Path] = field(default_factory=dict)

    @property
    def torch(self) -> Torch:
        return self.tools.torch

    @property
    def nvcc(self) -> Nvcc:
        return self.tools.nvcc

    @property
    def compiler(self) -> HostCompiler:
        return self.tools.compiler

    @property
    def module(self) -> Path:
        return self.workspace.root / f"{MODULE}{self.torch.extension_suffix}"

    @property
    def built_module(self) -> Path:
        """Where the link puts it, before it takes its place."""
        return self.workspace.root / self.steps[-1].output

    def facts(self, sources_sha256: str) -> dict[str, Any]:
        """What the module says of itself in __build__."""
        return {
            "architectures": [str(each) for each in self.architectures],
            "nvcc": self.nvcc.version,
            "cxx": self.compiler.described,
            "torch": self.torch.version,
            "cuda": self.torch.cuda,
            "python_abi": self.torch.extension_suffix,
            "sources_sha256": sources_sha256,
        }


class Memory:
    """Answers of tools asked before, kept from build to build; each holds while the tool's file stays the same."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.old = dict(answers or {})
        self.used: dict[str, Any] = {}

    def recall(self, key: str, ask: Any) -> Any:
        if key not in self.used:
            self.used[key] = self.old[key] if key in self.old else ask()
        return self.used[key]


def find_tools(memory: Memory) -> Tools:
    """The tools of this environment. Raises CannotTell where one is missing or does not run."""
    torch = find_python_torch()
    nvcc = find_nvcc(torch)
    said = memory.recall(f"nvcc {_identity(nvcc.path)}", lambda: describe_nvcc(nvcc))
    nvcc = replace(nvcc, version=said["version"], supported=tuple(said["supported"]))
    compiler = find_host_compiler()
    name = f"cxx {' '.join(compiler.command)} {_identity(compiler.path)}"
    said = memory.recall(name, lambda: describe_host_compiler(compiler))
    compiler = replace(compiler, version=said["version"], gnu=said["gnu"])
    name = " ".join(["linker for", name, *map(_identity, linker.candidates_present())])
    said = memory.recall(name, lambda: linker.fast_linker(compiler))
    return Tools(torch, nvcc, replace(compiler, linker=said))


def _identity(path: Path) -> str:
    status = path.stat()
    return f"{path}|{status.st_size}|{status.st_mtime_ns}"


def make_plan(workspace: Workspace, memory: Memory) -> Plan:
    """The plan for `workspace` in this environment. Raises CannotTell when the environment is not fit."""
    tools = find_tools(memory)
    torch, nvcc, compiler = tools.torch, tools.nvcc, tools.compiler
    mismatch = check_versions(nvcc, torch)
    libraries = find_libraries(torch, nvcc)

    visible = _visible(memory)
    architectures, notes, warnings = _architectures(nvcc, visible)
    warnings = [each for each in (idle_cuda_home(), mismatch) if each] + warnings
    if libraries.missing:
        warnings.append(f"not found, so not linked: {', '.join(libraries.missing)}")

    sources = find_sources(workspace)
    if sources.ignored:
        names = ", ".join(str(path.relative_to(workspace.root)) for path in sources.ignored)
        warnings.append(f"not built: {names}; only files directly in kernels/ are (folders in it hold headers)")
    writer = _StepWriter(workspace, torch, nvcc, compiler, libraries, tuple(architectures))
    steps = writer.steps(sources)
    described = {
        "format": FORMAT,
        "steps": [[step.output, step.command] for step in steps],
        "tools": tools.identity,
    }
    key = hashlib.sha256(json.dumps(described).encode("utf-8", "surrogateescape")).hexdigest()
    return Plan(
        workspace,
        tools,
        libraries,
        tuple(architectures),
        sources,
        tuple(steps),
        key,
        tuple(visible),
        tuple(notes),
        tuple(warnings),
        writer.links,
    )


def _visible(memory: Memory) -> list[tuple[int, int]]:
    """Compute capabilities of the visible GPUs. Asking wakes every GPU, so the answer is kept until the next boot."""
    if not gpus.present():
        return []
    listing = Path("/proc/driver/nvidia/gpus")
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        cards = ",".join(sorted(entry.name for entry in listing.iterdir()))
    except OSError:
        boot = cards = ""
    key = f"gpus {boot} {cards} {os.environ.get('CUDA_VISIBLE_DEVICES')}"

    def ask() -> list[list[int]]:
        return [list(gpu.capability) for gpu in gpus.visible_gpus()]

    found = memory.recall(key, ask) if cards else ask()
    return sorted({(major, minor) for major, minor in found})


def _architectures(nvcc: Nvcc, visible: list[tuple[int, int]]) -> tuple[list[Architecture], list[str], list[str]]:
    """Architectures to build for, with notes and warnings for the reader."""
    text = os.environ.get(VARIABLE)
    architectures = parse_arch_list(text, visible, nvcc.supported or None)
    asked = bool(text and text.strip(" ;,\t"))
    notes = []
    if not asked and not visible:
        notes.append(
            f"no GPU is visible and {VARIABLE} is unset: building for {architectures[0]} ({architectures[0].sm})"
        )
    if nvcc.supported:
        source = f"{VARIABLE}={text}" if asked else "the GPU present"
        check_supported(architectures, nvcc.supported, nvcc.described, source)
    return architectures, notes, coverage_warnings(architectures, visible)


def coverage_warnings(architectures: list[Architecture], visible: list[tuple[int, int]]) -> list[str]:
    left = [f"{major}.{minor}" for major, minor in uncovered(architectures, visible)]
    if not left:
        return []
    built = ", ".join(each.sm for each in architectures)
    return [
        f"built for {built}, but a visible GPU is {' and '.join('sm_' + each.replace('.', '') for each in left)}: "
        f"its kernels will not start there; rebuild with {VARIABLE}={';'.join(left)}"
    ]


class _StepWriter:
    """Compile and link steps. Paths of the workspace are relative to it (the steps run there), so that it can be called
    anything; of the places outside it, those whose names nvcc cannot take are reached through links in build/links/."""

    def __init__(
        self,
        workspace: Workspace,
        torch: Torch,
        nvcc: Nvcc,
        compiler: HostCompiler,
        libraries: Libraries,
        architectures: tuple[Architecture, ...],
    ) -> None:
        self.workspace = workspace
        self.torch = torch
        self.nvcc = nvcc
        self.compiler = compiler
        self.libraries = libraries
        self.architectures = architectures
        self.links: dict[str, Path] = {}

    def steps(self, sources: Sources) -> list[Step]:
        steps = [self._kernel(path) for path in sources.kernels]
        steps += [self._host(path, flags.helper_flags()) for path in sources.helpers]
        for path in sources.bindings:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                text = ""  # the compiler will say it
            steps.append(self._host(path, flags.binding_flags(self.compiler.gnu), precompiled=pch.fitting(text)))
        steps.append(self._host(sources.entry, flags.binding_flags(self.compiler.gnu)))
        steps.append(self._facts())
        steps.append(self._link([step.output for step in steps]))
        # The slowest first: what starts last should not be what takes longest.
        return sorted(steps[:-1], key=lambda step: not step.inputs[0].endswith("_binding.cpp")) + steps[-1:]

    def shown(self, path: Path) -> str:
        """`path` as the compiler gets it, and as its messages and __FILE__ show it."""
        root = self.workspace.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    def _output(self, path: Path) -> str:
        if path.is_relative_to(self.workspace.root):
            return f"build/obj/{self.shown(path)}.o"
        return f"build/obj/workbench/{path.name}.o"

    def _for_nvcc(self, path: Path) -> str:
        shown = self.shown(path)
        if not _NVCC_BREAKS.search(shown):
            return shown
        name = f"build/links/{hashlib.sha256(shown.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
        self.links[name] = path
        return name

    def _kernel(self, path: Path) -> Step:
        output, depfile = self._output(path), f"{self._output(path)}.d"
        own = [self._for_nvcc(folder) for folder in flags.own_include_folders(self.workspace)]
        others = [self._for_nvcc(folder) for folder in flags.cuda_include_folders(self.torch, self.nvcc)]
        command = [
            *("sh", self.shown(NVCC_SCRIPT), output),
            *(sys.executable, "-S", "-E", self.shown(HALVES_SCRIPT)),
            str(self.nvcc.path),
            "-ccbin",
            self.compiler.for_nvcc,
            *flags.nvcc_flags(self.architectures),
            *flags.own_include_flags(own),
            *(flag for folder in others for flag in ("-isystem", folder)),
            *("-MMD", "-MF", depfile),
            *("-c", self.shown(path), "-o", output),
        ]
        return Step(output, (self.shown(path),), tuple(command), f"nvcc {self.shown(path)}", (STAMP,), depfile)

    def _host(self, path: Path, own_flags: list[str], precompiled: str = "") -> Step:
        output, depfile = self._output(path), f"{self._output(path)}.d"
        folders = [self.shown(folder) or "." for folder in flags.own_include_folders(self.workspace)]
        command = [
            *self.compiler.command,
            *own_flags,
            *flags.own_include_flags(folders),
            *(
                flag
                for folder in flags.system_include_folders(self.torch, self.nvcc)
                for flag in ("-isystem", str(folder))
            ),
            *("-MMD", "-MF", depfile),
            *("-c", self.shown(path), "-o", output),
        ]
        title = f"{self.compiler.command[0]} {self.shown(path)}"
        return Step(output, (self.shown(path),), tuple(command), title, (STAMP,), depfile, precompiled)

    def _facts(self) -> Step:
        command = (*self.compiler.command, "-fPIC", "-c", FACTS_SOURCE, "-o", "build/obj/facts.o")
        return Step("build/obj/facts.o", (FACTS_SOURCE,), command, "build facts", (STAMP,))

    def _link(self, objects: list[str]) -> Step:
        output = f"build/{MODULE}{self.torch.extension_suffix}"
        link_flags = flags.link_flags(self.libraries, self.compiler.linker)
        command = (*self.compiler.command, "-shared", "-o", output, *objects, *link_flags)
        return Step(output, tuple(objects), command, f"link {MODULE}")
