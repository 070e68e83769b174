"""Builds a workspace's kernels and bindings, unchanged, for the CPU: the simulated `cuda_extension`.

    build/sim/src/          the sources as rewritten (utils/sim/rewriter.py), mirrored so that their includes still work
    build/sim/<mode>/       objects, and the module cuda_extension<suffix>
    the user's cache        the runtime's objects and the precompiled torch header, by content: shared by all workspaces

Modes: "plain" runs fast; "asan" is instrumented by AddressSanitizer, whose runtime must be preloaded (`environment`);
"race" has every access of a kernel announced to the simulator's own checker. The module tells a caller what it is by
`__simulated__ = True`, and what it found by `utils.sim.reports`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from utils.build.digest import digest_of, file_sha256
from utils.build.sources import HEADER_SUFFIXES, find_sources, include_folders, tracked_files
from utils.build.storage import install, locked, writable_folder, write_text
from utils.build.toolchain import MODULE
from utils.present.outcome import CannotTell
from utils.problem.workspace import ROOT, Workspace
from utils.sim.compiler import (
    HERE,
    MODES,
    Tools,
    environment,
    find_tools,
    host_flags,
    kernel_command,
    key_of,
    link,
    machine_flags,
    module_object,
    run_all,
    runtime,
    simulator_digest,
    torch_prelude,
)
from utils.sim.rewriter import rewrite, scan

_TORCH_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|ATen|c10)/[^>"\n]+)[>"]', re.M)


def build_simulated(workspace: Workspace, mode: str = "plain", say: Callable[[str], None] = lambda text: None) -> Path:
    """Path of the simulated module of `workspace`, built where it is not up to date.

    Raises No when a source does not compile (the first error, with its place), CannotTell where the machine lacks
    something or the workspace calls what is not simulated.
    """
    if mode not in MODES:
        raise CannotTell(f"there is no simulation mode {mode!r}; choose one of {', '.join(MODES)}")
    sources = find_sources(workspace)
    if not sources.bindings:
        raise CannotTell(f"{workspace.kernels} has no *_binding.cpp; there is nothing to simulate")
    tools = find_tools()
    files = tracked_files(workspace)
    digest = digest_of(files)
    key = key_of(
        digest,
        mode,
        simulator_digest(),
        *machine_flags(),
        tools.compiler.described,
        tools.torch.version,
        str(workspace.root),
    )
    folder = writable_folder(workspace.build / "sim")
    target = folder / mode / f"{MODULE}{tools.torch.extension_suffix}"
    stamp = folder / mode / "stamp"
    if target.exists() and stamp.exists() and stamp.read_text() == key:
        return target
    writable_folder(folder / mode)
    with locked(folder / "lock", say):
        say(f"building the simulated module ({mode})")
        stamp.unlink(missing_ok=True)
        mirrored = _mirror(workspace, files, folder / "src")
        built = _compile(workspace, tools, mode, mirrored, digest, folder, say)
        install(built, target)
        write_text(stamp, key)
    return target


def build_sources(units: Sequence[Path], target: Path, mode: str = "plain") -> Path:
    """A plain shared library of the .cu files `units` on the simulator, for tests that call launchers through ctypes.

    Every `extern "C"` function of the units is visible. Raises as `build_simulated`.
    """
    tools = find_tools()
    folder = writable_folder(target.parent / f"{target.stem}.build")
    kernels = scan(units)
    tasks, objects = [], []
    for unit in units:
        source = folder / f"{unit.stem}.{mode}.cpp"
        write_text(
            source, rewrite(unit.read_bytes(), unit, kernels).decode("utf-8", "surrogateescape"), only_if_changed=True
        )
        made = folder / f"{unit.stem}.{mode}.o"
        objects.append(made)
        tasks.append((kernel_command(tools, mode, source, made, [unit.parent], visible=True), made, unit))
    run_all(tasks)
    link(tools, [*objects, *runtime(tools, mode, torch_allocator=False)], target, mode, torch=False)
    return target


# ---- sources -----------------------------------------------------------------------------------------------------


def _mirror(workspace: Workspace, files: dict[str, Path], folder: Path) -> dict[Path, Path]:
    """Writes every file as rewritten under `folder`; from the user's path to the mirrored one."""
    kernels = scan(files.values())
    mirrored, kept = {}, set()
    for path in files.values():
        place = _mirror_place(workspace, path, folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = rewrite(path.read_bytes(), path, kernels)
        write_text(place, text.decode("utf-8", "surrogateescape"), only_if_changed=True)
        mirrored[path] = place
        kept.add(place)
    for old in folder.rglob("*"):
        if old.is_file() and old not in kept:
            old.unlink()
    (folder / "workbench/kernels").mkdir(parents=True, exist_ok=True)
    return mirrored


def _mirror_place(workspace: Workspace, path: Path, folder: Path) -> Path:
    if path.is_relative_to(workspace.root):
        return folder / "workspace" / path.relative_to(workspace.root)
    if path.is_relative_to(ROOT):
        return folder / "workbench" / path.relative_to(ROOT)
    return folder / "elsewhere" / key_of(str(path.parent))[:12] / path.name


def _own_includes(workspace: Workspace, folder: Path) -> list[str]:
    """The include folders of a real build, mirrored."""
    return [f"-I{_mirror_place(workspace, each / 'x', folder).parent}" for each in include_folders(workspace)]


# ---- compiling ---------------------------------------------------------------------------------------------------


def _compile(
    workspace: Workspace,
    tools: Tools,
    mode: str,
    mirrored: dict[Path, Path],
    digest: str,
    folder: Path,
    say: Callable[[str], None],
) -> Path:
    sources = find_sources(workspace)
    own = _own_includes(workspace, folder / "src")
    headers = sorted({name for path in mirrored for name in _torch_headers(path)})
    with ThreadPoolExecutor(1) as aside:
        waiting = aside.submit(torch_prelude, tools, headers, say)
        objects: list[Path] = []
        tasks = []
        host = writable_folder(folder / "host")
        made_for = writable_folder(folder / mode)
        for path in sources.kernels:
            made = made_for / f"{path.stem}.o"
            objects.append(made)
            tasks.append((kernel_command(tools, mode, mirrored[path], made, own), made, path))
        prelude = waiting.result()
    for path in (*sources.bindings, *sources.helpers, sources.entry):
        made = host / f"{path.stem}.o"
        objects.append(made)
        command = [*tools.compiler.command, *host_flags(tools)]
        if path == sources.entry:
            command.append("-DPyInit_cuda_extension=sim_inner_PyInit_cuda_extension")
        if path in sources.helpers:
            command += [*own, *tools.include, "-include", str(HERE / "include/cuda_runtime.h")]
        else:
            command += ["-include", str(prelude), *own, *tools.include]
        tasks.append(([*command, "-x", "c++", "-c", str(mirrored[path]), "-o", str(made)], made, path))
    run_all(_stale(tasks, mirrored))

    facts = {
        "simulated": True,
        "mode": mode,
        "architectures": [],
        "nvcc": "",
        "cxx": tools.compiler.described,
        "torch": tools.torch.version,
        "sources_sha256": digest,
        "simulator_sha256": simulator_digest(),
    }
    module = module_object(tools, mode, facts, folder)
    calls = _texts(mirrored)
    libraries = [name for name, pattern in _LIBRARIES.items() if re.search(pattern, calls)]
    built = folder / mode / f".{MODULE}.so"
    link(
        tools,
        [*objects, *module, *runtime(tools, mode, torch_allocator=True, libraries=libraries)],
        built,
        mode,
        torch=True,
    )
    return built


def _stale(
    tasks: Sequence[tuple[list[str], Path, Path]], mirrored: dict[Path, Path]
) -> list[tuple[list[str], Path, Path]]:
    """The tasks whose command, source or headers are not those of the object that is there; the others are left out."""
    headers = {str(path): place for path, place in mirrored.items() if path.suffix in HEADER_SUFFIXES}
    own = digest_of({**headers, **{path.name: path for path in (HERE / "include").rglob("*") if path.is_file()}})
    todo = []
    for command, made, source in tasks:
        key = key_of(own, file_sha256(mirrored[source]), *command)
        stamp = made.with_suffix(".key")
        if made.exists() and stamp.exists() and stamp.read_text() == key:
            continue
        made.unlink(missing_ok=True)
        write_text(stamp, key)
        todo.append((command, made, source))
    return todo


_LIBRARIES = {
    "cublas": r"\bcublas[A-Z]\w*\s*\(|\bgetCurrentCUDABlas",
    "cudnn": r"\bcudnn[A-Z]\w*\s*\(|\bgetCudnnHandle",
}


def _texts(files: dict[Path, Path]) -> str:
    return "\n".join(path.read_text(errors="replace") for path in files)


def _torch_headers(path: Path) -> list[str]:
    """torch headers that `path` includes beyond the prelude's own and those that the simulator replaces."""
    found = _TORCH_INCLUDE.findall(path.read_text(errors="replace"))
    usual = {"torch/types.h", "torch/csrc/utils/pybind.h"}
    return [name for name in found if name not in usual and not (HERE / "include" / name).exists()]


__all__ = ["MODES", "build_simulated", "build_sources", "environment", "simulator_digest"]
