"""One build, from sources to the module in its place.

    1  what is asked: tools, architectures, sources, flags; together the plan
    2  up to date?  plan, contents of all inputs and the module itself equal the record of the last build: nothing to do
    3  preflight: mistakes that can be told from the sources alone, before any compiler runs
    4  ninja compiles and links; undefined symbols, and an import that fails, end the build
    5  the module is put in its place in one step, with its facts and the record of the build beside it

A build that fails leaves no module: what is importable is what the sources say.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.build import flags, ninja_file
from utils.build.digest import digest_of, file_sha256, sources_digest
from utils.build.failures import Failure
from utils.build.ninja_file import Step
from utils.build.plan import FACTS_SOURCE, STAMP, Memory, Plan, make_plan
from utils.build.resources import KernelResources, name_all, parse
from utils.build.sources import tracked_files
from utils.build.storage import install, locked, writable_folder, write_text
from utils.build.toolchain import MODULE, find_ninja
from utils.present.outcome import CannotTell
from utils.problem.workspace import Workspace

if TYPE_CHECKING:
    from utils.build.importing import Importer

BUILT, UP_TO_DATE, FAILED = "BUILT", "UP_TO_DATE", "FAILED"

Say = Callable[[str], None]


@dataclass
class BuildResult:
    """How a build ended; `module` is there unless the verdict is FAILED.

    facts       what the module says of itself in __build__
    registered  the kernels in the module: name -> file, line, functions
    resources   registers, spills and shared memory of each GPU kernel
    compiled    titles of the steps that ran
    seconds     wall-clock time of the whole
    """

    verdict: str
    module: Path
    log: Path
    facts: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    resources: list[KernelResources] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    compiled: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return self.verdict != FAILED


def build(workspace: Workspace, say: Say = lambda text: None) -> BuildResult:
    """Builds the module of `workspace`, or finds it up to date.

    `say` is told, line by line, what goes on. Sources that do not build give a FAILED result; an environment that is
    not fit raises CannotTell. After either no module of other sources is left in the workspace.
    """
    started = time.monotonic()
    try:
        state = _read_json(workspace.build / "state.json")
        memory = Memory(state.get("tools"))
        plan = make_plan(workspace, memory)
    except CannotTell:
        _remove_if_stale(workspace)
        raise
    digest = digest_of(tracked_files(workspace))
    result = BuildResult(FAILED, plan.module, workspace.build / "compile.log", plan.facts(digest))
    result.notes, result.warnings = list(plan.notes), list(plan.warnings)
    try:
        # An up-to-date module needs no lock, so a read-only workspace that is built can be asked too.
        if not _up_to_date(state, plan, digest):
            try:
                writable_folder(workspace.root)
                writable_folder(workspace.build)
            except CannotTell:
                _remove_if_stale(workspace)
                raise
            with locked(workspace.build / ".lock", say):
                # Another build may have done the work while this one waited.
                state = _read_json(workspace.build / "state.json")
                if not _up_to_date(state, plan, digest):
                    _Run(plan, state, memory, digest, say).into(result)
                    return result
        result.verdict = UP_TO_DATE
        result.registered = state.get("registered", {})
        result.resources = [KernelResources(**each) for each in state.get("resources", [])]
        result.warnings += state.get("warnings", [])
        return result
    finally:
        result.seconds = time.monotonic() - started


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _modules(workspace: Workspace) -> list[Path]:
    """Every built module in the workspace, of other Python versions too."""
    return [path for path in workspace.root.glob(f"{MODULE}.*so") if path.is_file() or path.is_symlink()]


def _remove_if_stale(workspace: Workspace) -> None:
    """Removes modules that are not of the present sources, for builds that end before they begin."""
    if _read_json(workspace.build / "build_facts.json").get("sources_sha256") != sources_digest(workspace):
        _remove_modules(workspace)


def _remove_modules(workspace: Workspace, but: Path | None = None) -> None:
    for path in _modules(workspace):
        if path != but:
            with contextlib.suppress(OSError):
                path.unlink()
    if but is None:
        with contextlib.suppress(OSError):
            (workspace.build / "build_facts.json").unlink()


def _up_to_date(state: dict[str, Any], plan: Plan, digest: str) -> bool:
    """By content, not by time: an older file copied over a newer one is a change, a touched file is none."""
    return (
        state.get("plan") == plan.key
        and state.get("sources_sha256") == digest
        and state.get("module_sha256") == file_sha256(plan.module)
        and all(_unchanged(plan, inputs) for inputs in state.get("objects", {}).values())
    )


def _unchanged(plan: Plan, inputs: dict[str, str]) -> bool:
    return all(file_sha256(plan.workspace.root / name) == digest for name, digest in inputs.items())


class _Run:
    """A build that has something to do, under the lock."""

    def __init__(self, plan: Plan, state: dict[str, Any], memory: Memory, digest: str, say: Say) -> None:
        self.plan = plan
        self.state = state
        self.memory = memory
        self.digest = digest
        self.say = say
        self.workspace = plan.workspace
        self.root = plan.workspace.root
        self.folder = plan.workspace.build
        self.failed_steps: dict[str, int | None] = {}
        self.ninja_said = ""

    def into(self, result: BuildResult) -> None:
        """Runs the build and fills `result`; whatever stops it, no older module stays behind."""
        try:
            result.failures = self._work(result)
            if not result.failures:
                result.verdict = BUILT
        finally:
            if not result.ok:
                _remove_modules(self.workspace)

    def _work(self, result: BuildResult) -> list[Failure]:
        from utils.build import preflight
        from utils.build.editor import compile_commands

        write_text(self.root / "compile_commands.json", compile_commands(self.plan), only_if_changed=True)
        if {'"', "\\", "\n"} & set(str(self.root)):
            raise CannotTell(f"{self.root}: nvcc cannot build in a folder whose path has a double quote or a backslash")
        failures, warnings = preflight.check(self.workspace, self.plan.sources, self._shown)
        if failures:
            return failures
        ninja = find_ninja()
        self._prepare()
        with self._importer() as importer:
            objects = self._compile(ninja, result)
            logs = self._logs()
            self._write_log(logs)
            failures = self._failures(logs) or self._import(result, importer)
        if failures:
            self._remember(objects, {})
            return failures
        result.resources = self._resources(logs)
        result.warnings += warnings
        install(self.plan.built_module, self.plan.module)
        _remove_modules(self.workspace, but=self.plan.module)
        module_sha256 = record_facts(self.workspace, self.plan.module, result.facts)
        self._remember(
            objects,
            {
                "plan": self.plan.key,
                "sources_sha256": self.digest,
                "module_sha256": module_sha256,
                "registered": result.registered,
                "resources": [each.record() for each in result.resources],
                "warnings": warnings,
            },
        )
        return []

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)

    def _remember(self, objects: dict[str, dict[str, str]], outcome: dict[str, Any]) -> None:
        """The record of this build: what each object was made from, whatever became of the whole."""
        state = {"tools": self.memory.used, "objects": objects, **outcome}
        write_text(self.folder / "state.json", json.dumps(state))

    def _prepare(self) -> None:
        """Files the steps need: folders, links, the facts, the ninja file; objects of other contents go."""
        for step in self.plan.steps:
            (self.root / step.output).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / "tmp").mkdir(exist_ok=True)
        for name, target in self.plan.links.items():
            link = self.root / name
            link.parent.mkdir(exist_ok=True)
            if not link.is_symlink() or Path(os.readlink(link)) != target:
                link.unlink(missing_ok=True)
                link.symlink_to(target)
        write_text(self.root / FACTS_SOURCE, facts_source(self.plan.facts(self.digest)), only_if_changed=True)
        write_text(self.root / STAMP, "\n".join(self.plan.tools.identity) + "\n", only_if_changed=True)
        write_text(self.folder / "build.ninja", ninja_file.text(self.plan.steps, "build"), only_if_changed=True)
        # ninja compares times; contents decide.
        known = self.state.get("objects", {})
        for step in self.plan.steps:
            if not known.get(step.output) or not _unchanged(self.plan, known[step.output]):
                (self.root / step.output).unlink(missing_ok=True)

    def _compile(self, ninja: Path, result: BuildResult) -> dict[str, dict[str, str]]:
        """Runs ninja; what each object that is there now was made from: file -> SHA-256."""
        from utils.build.pch import BuildHeaders

        before = {step.output: _stamp(self.root / step.output) for step in self.plan.steps}
        # Before the compilers read them: a file edited meanwhile is then seen as changed at the next build.
        sources = {
            step.output: {name: file_sha256(self.root / name) for name in step.inputs} for step in self.plan.steps[:-1]
        }
        began = time.time_ns()
        todo = [step for step in self.plan.steps[:-1] if before[step.output] is None]
        headers = BuildHeaders([step.precompiled for step in todo if step.precompiled], self.plan.tools, self.say)
        jobs = flags.jobs()
        precompiled = headers.ready(jobs - len(todo) if jobs >= 4 else 0)
        count = sum(1 for step in todo if step.depfile)
        if count:
            shown = ", ".join(each.sm for each in self.plan.architectures)
            self.say(
                f"compiling {count} file{'s' if count > 1 else ''} for {shown} "
                f"with nvcc {self.plan.nvcc.version} and {self.plan.compiler.described}"
            )
        self._ninja(ninja, jobs, precompiled)
        headers.finish()
        after = {step.output: _stamp(self.root / step.output) for step in self.plan.steps}
        result.compiled = [step.title for step in self.plan.steps if after[step.output] != before[step.output]]
        # What was not compiled is still made from what the record says: `_prepare` has seen to that.
        return {
            step.output: self._inputs_of(step, sources[step.output], began)
            if after[step.output] != before[step.output]
            else self.state["objects"][step.output]
            for step in self.plan.steps[:-1]
            if after[step.output] is not None
        }

    def _ninja(self, ninja: Path, jobs: int, headers: dict[str, Path]) -> None:
        environment = {
            **os.environ,
            "LC_ALL": "C",  # messages are read by errors.py
            "NINJA_STATUS": "[%f/%t] ",
            "TMPDIR": "build/tmp",  # beside the objects: writable, and of a name every tool can take
            **{ninja_file.pch_variable(kind): str(header) for kind, header in headers.items()},
        }
        command = [str(ninja), "-f", "build/build.ninja", "-k", "0", "-j", str(jobs)]
        said = []
        with subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as run:
            try:
                # Needed when ninja is done, and loaded while it is at work.
                from utils.build import errors, functions, link  # noqa: F401

                assert run.stdout is not None
                for line in run.stdout:
                    said.append(line)
                    if line.startswith("["):
                        self.say(line.rstrip())
                    elif match := re.match(r"FAILED: (?:\[code=(\d+)\] )?(.*?)\s*$", line):
                        self.failed_steps[match[2]] = int(match[1]) if match[1] else None
                code = run.wait()
            except BaseException:
                run.terminate()  # ninja ends its compilers
                raise
        self.ninja_said = "".join(said)
        if code != 0 and not self.failed_steps:
            raise CannotTell(
                f"ninja itself failed: {self.ninja_said.strip().splitlines()[-1] if said else f'exit status {code}'}"
            )

    def _inputs_of(self, step: Step, sources: dict[str, str], began: int) -> dict[str, str]:
        inputs = dict(sources)
        if step.depfile:
            toolkit = (str(self.plan.nvcc.root) + "/", str(self.plan.nvcc.root.resolve()) + "/")
            with contextlib.suppress(OSError):
                for name in ninja_file.headers_of((self.root / step.depfile).read_text(errors="surrogateescape")):
                    path = self.root / name
                    if os.path.normpath(path).startswith(toolkit):
                        continue
                    # Changed while the compilers ran: which of its contents they saw is not known.
                    fresh = path.exists() and path.stat().st_mtime_ns >= began
                    inputs.setdefault(name, "" if fresh else file_sha256(path))
        return inputs

    def _logs(self) -> dict[str, str]:
        logs = {}
        for step in self.plan.steps:
            with contextlib.suppress(OSError):
                logs[step.output] = (self.root / step.log).read_text(errors="replace")
        return logs

    def _write_log(self, logs: dict[str, str]) -> None:
        tools = [
            self.plan.nvcc.described,
            self.plan.compiler.described,
            f"torch {self.plan.torch.version} ({self.plan.torch.root})",
        ]
        parts = ["\n".join(tools) + "\n"]
        for step in self.plan.steps:
            state = "FAILED " if step.output in self.failed_steps else ""
            parts.append(f"=== {state}{step.title}\n$ {' '.join(step.command)}\n{logs.get(step.output, '')}")
        write_text(self.folder / "compile.log", "\n".join([*parts, "=== ninja", self.ninja_said]))

    def _failures(self, logs: dict[str, str]) -> list[Failure]:
        """What failed in the steps; empty when all is compiled and every symbol has its definition."""
        from utils.build import errors, functions, link

        link_step = self.plan.steps[-1]
        failures = [
            errors.compile_failure(
                step.title, step.inputs[0], logs.get(step.output, ""), self.failed_steps[step.output]
            )
            for step in self.plan.steps[:-1]
            if step.output in self.failed_steps
        ]
        link_log = logs.get(link_step.output, "")
        if not failures and (link_step.output in self.failed_steps or link.undefined_symbols(link_log)):
            try:
                known = functions.parse_files(sorted(set(tracked_files(self.workspace).values())), self._shown)
            except ImportError:
                known = []
            failures = link.link_failures(link_log, known, [self._shown(path) for path in self.plan.sources.own])
            (self.root / link_step.output).unlink(missing_ok=True)
        return failures

    def _importer(self) -> contextlib.AbstractContextManager[Importer | None]:
        """The process that will import the module, where that is foreseen: it loads torch while the compilers run."""
        if self._registrations_stand(step for step in self.plan.steps if not (self.root / step.output).exists()):
            return contextlib.nullcontext()
        from utils.build.importing import Importer

        torch = self.plan.torch
        return Importer(torch.python, self.root, [torch.lib / "libtorch_python.so"])

    def _registrations_stand(self, compiled: Iterable[Step]) -> bool:
        """Whether the registrations are still those of the last good build when `compiled` are the steps that ran."""
        same = self.state.get("plan") == self.plan.key and self.state.get("registered")
        registering = (step for step in compiled if step.depfile and not step.inputs[0].endswith(".cu"))
        return bool(same) and not any(registering)

    def _import(self, result: BuildResult, importer: Importer | None) -> list[Failure]:
        """Imports the linked module, unless its registrations are those of the last good build."""
        if self._registrations_stand(step for step in self.plan.steps if step.title in result.compiled):
            result.registered = self.state["registered"]
            return []
        from utils.build.importing import try_import

        module = self.plan.built_module
        imported = importer.load(module) if importer else try_import(self.plan.torch.python, module, self.root)
        result.registered = imported.kernels
        return [imported.failure] if imported.failure else []

    def _resources(self, logs: dict[str, str]) -> list[KernelResources]:
        kernels = [step for step in self.plan.steps if step.inputs[0].endswith(".cu")]
        found = [each for step in kernels for each in parse(logs.get(step.output, ""), step.inputs[0])]
        name_all(found)
        return sorted(found, key=lambda each: (each.file, each.kernel, each.architecture))


def record_facts(workspace: Workspace, module: Path, facts: dict[str, Any]) -> str:
    """Writes build/build_facts.json: `facts`, and name and SHA-256 of the built module, which is returned."""
    module_sha256 = file_sha256(module)
    record = {**facts, "module": module.name, "module_sha256": module_sha256}
    write_text(workspace.build / "build_facts.json", json.dumps(record, indent=2) + "\n")
    return module_sha256


def facts_source(facts: dict[str, Any]) -> str:
    """A C++ source that defines the JSON text of `facts` under the name binding.cpp knows."""
    literal = json.dumps(facts).replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return (
        "// Written by utils/build.\n"
        'extern "C" {\n'
        "extern const char cuda_extension_build_facts[];\n"
        f'const char cuda_extension_build_facts[] = "{literal}";\n'
        "}\n"
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino
