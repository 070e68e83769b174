"""Builds a workspace's kernels and bindings, unchanged, for the CPU: the simulated `cuda_extension`.

    build/sim/src/          the sources as rewritten (utils/sim/rewriter.py), mirrored so that their includes still work
    build/sim/<mode>/       objects, and the module cuda_extension<suffix>
    the user's cache        the runtime's objects and the precompiled torch header, by content: shared by all workspaces

Modes: "plain" runs fast; "asan" is instrumented by AddressSanitizer, whose runtime must be preloaded (`environment`);
"race" has every access of a kernel announced to the simulator's own checker. The module tells a caller what it is by
`__simulated__ = True`, and what it found by `utils.sim.reports`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from utils.build.digest import digest_of, file_sha256
from utils.build.flags import jobs, system_include_folders
from utils.build.sources import HEADER_SUFFIXES, find_sources, include_folders, included_files, tracked_files
from utils.build.storage import cache_folder, install, locked, writable_folder, write_text
from utils.build.toolchain import MODULE, HostCompiler, Nvcc, Torch, find_host_compiler, find_nvcc, find_python_torch
from utils.present.outcome import CannotTell, No
from utils.problem.workspace import ROOT, Workspace
from utils.sim.rewriter import rewrite, scan

HERE = Path(__file__).resolve().parent
MODES = ("plain", "asan", "race")

_COMMON = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-w", "-fno-strict-aliasing", "-ffp-contract=off"]
# Small functions of the simulator's headers must disappear into kernels whatever the mode.
_KERNEL = {
    "plain": ["-O2", "-g1", "-gdwarf-4"],
    "asan": [
        "-O1",
        "-g1",
        "-gdwarf-4",
        "-fsanitize=address",
        "-fsanitize=alignment",
        "-fsanitize-recover=address,alignment",
        "-fno-omit-frame-pointer",
    ],
    "race": [
        "-O1",
        "-g1",
        "-gdwarf-4",
        "-fsanitize=thread",
        "-fsanitize=alignment",
        "-fsanitize-recover=all",
        "--param=tsan-instrument-func-entry-exit=0",
        "--param=tsan-distinguish-volatile=1",
    ],
}  # fmt: skip
_NOT_SIMULATED = re.compile(r"^(cuda[A-Z]|cu[A-Z]|cublas|cudnn|curand|cufft|cusparse|cusolver|nccl|nvrtc)")
_TORCH_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]((?:torch|ATen|c10)/[^>"\n]+)[>"]', re.M)


# What the precompiled torch header is made of, of the simulator's own.
_PRELUDE_FILES = [
    "sim/torch_prelude.h",
    "sim/core.h",
    "sim/api.h",
    "cuda_runtime.h",
    *sorted(
        path.relative_to(HERE / "include").as_posix()
        for name in ("c10", "ATen")
        for path in (HERE / "include" / name).rglob("*.h")
    ),
]


@dataclass(frozen=True)
class _Tools:
    torch: Torch
    nvcc: Nvcc
    compiler: HostCompiler

    @property
    def include(self) -> list[str]:
        folders = [HERE / "include", *system_include_folders(self.torch, self.nvcc)]
        return [f"-I{folders[0]}", *(word for folder in folders[1:] for word in ("-isystem", str(folder)))]


def environment(mode: str) -> dict[str, str]:
    """What a process that loads a module of `mode` needs in its environment from the start."""
    if mode != "asan":
        return {}
    compiler = find_host_compiler()
    libraries = []
    # libstdc++ too: AddressSanitizer looks for its __cxa_throw as the process starts.
    for name in ("libasan.so", "libstdc++.so.6"):
        done = subprocess.run([*compiler.command, f"-print-file-name={name}"], capture_output=True, text=True)
        library = Path(done.stdout.strip())
        if not library.is_absolute() or not library.exists():
            raise CannotTell(f"{compiler.command[0]} has no {name}; install the compiler's AddressSanitizer runtime")
        libraries.append(str(library.resolve()))
    options = "detect_leaks=0:halt_on_error=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:detect_odr_violation=0:"
    options += "alloc_dealloc_mismatch=0:detect_stack_use_after_return=0:use_sigaltstack=0:print_summary=0:"
    options += "verify_asan_link_order=0:log_path=/dev/null"
    return {"LD_PRELOAD": ":".join(libraries), "ASAN_OPTIONS": options}


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
    tools = _Tools(find_python_torch(), find_nvcc(_torch_or_none()), find_host_compiler())
    files = tracked_files(workspace)
    digest = digest_of(files)
    key = _digest(
        digest,
        mode,
        simulator_digest(),
        *_machine_flags(),
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


def build_sources(
    units: Sequence[Path], target: Path, mode: str = "plain", exports: Sequence[str] = (), torch_less: bool = True
) -> Path:
    """A plain shared library of the .cu files `units` on the simulator, for tests that call launchers through ctypes.

    `exports` is unused names' guard: every `extern "C"` function of the units is visible. Raises as `build_simulated`.
    """
    del exports, torch_less
    tools = _Tools(find_python_torch(), find_nvcc(_torch_or_none()), find_host_compiler())
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
        tasks.append((_kernel_command(tools, mode, source, made, [unit.parent], visible=True), made, unit))
    _run_all(tasks)
    _link(tools, [*objects, *_runtime(tools, mode, torch_allocator=False)], target, mode, torch=False)
    return target


def simulator_digest() -> str:
    """SHA-256 over the simulator's own files: a module built by another simulator is not up to date."""
    wanted = sorted(path for path in HERE.rglob("*") if path.suffix in (".py", ".h", ".hpp", ".cpp"))
    return digest_of({path.relative_to(HERE).as_posix(): path for path in wanted})


def _torch_or_none() -> Torch | None:
    try:
        return find_python_torch()
    except CannotTell:
        return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _machine_flags() -> list[str]:
    """x86-64-v3 where this machine has it: fused multiply-add and half conversions in hardware."""
    if platform.machine() != "x86_64":
        return []
    try:
        known = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())  # type: ignore[index]
    except (OSError, TypeError):
        return []
    return ["-march=x86-64-v3"] if {"avx2", "fma", "f16c", "bmi2", "movbe"} <= known else []


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
    return folder / "elsewhere" / _digest(str(path.parent))[:12] / path.name


def _own_includes(workspace: Workspace, folder: Path) -> list[str]:
    """The include folders of a real build, mirrored."""
    return [f"-I{_mirror_place(workspace, each / 'x', folder).parent}" for each in include_folders(workspace)]


# ---- compiling ---------------------------------------------------------------------------------------------------


def _kernel_command(
    tools: _Tools, mode: str, source: Path, made: Path, own: Sequence[Path | str], visible: bool = False
) -> list[str]:
    return [
        *tools.compiler.command,
        *_COMMON,
        *(["-fvisibility=default"] if visible else []),
        *_machine_flags(),
        *_KERNEL[mode],
        f"-DSIM_MODE={MODES.index(mode)}",
        *(each if str(each).startswith("-I") else f"-I{each}" for each in map(str, own)),
        *tools.include,
        "-include",
        str(HERE / "include/sim/cuda_prelude.h"),
        "-x",
        "c++",
        "-c",
        str(source),
        "-o",
        str(made),
    ]


def _host_flags(tools: _Tools) -> list[str]:
    return [*_COMMON, *_machine_flags(), "-O1", "-DSIM_MODE=0", "-DSIM_HOST_ONLY", "-DNDEBUG"]


def _compile(
    workspace: Workspace,
    tools: _Tools,
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
        waiting = aside.submit(_torch_prelude, tools, headers, say)
        objects: list[Path] = []
        tasks = []
        host = writable_folder(folder / "host")
        made_for = writable_folder(folder / mode)
        for path in sources.kernels:
            made = made_for / f"{path.stem}.o"
            objects.append(made)
            tasks.append((_kernel_command(tools, mode, mirrored[path], made, own), made, path))
        prelude = waiting.result()
    for path in (*sources.bindings, *sources.helpers, sources.entry):
        made = host / f"{path.stem}.o"
        objects.append(made)
        command = [*tools.compiler.command, *_host_flags(tools)]
        if path == sources.entry:
            command.append("-DPyInit_cuda_extension=sim_inner_PyInit_cuda_extension")
        if path in sources.helpers:
            command += [*own, *tools.include, "-include", str(HERE / "include/cuda_runtime.h")]
        else:
            command += ["-include", str(prelude), *own, *tools.include]
        tasks.append(([*command, "-x", "c++", "-c", str(mirrored[path]), "-o", str(made)], made, path))
    _run_all(_stale(tasks, mirrored))

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
    module = _module_object(tools, mode, facts, folder)
    calls = _texts(mirrored)
    libraries = [name for name, pattern in _LIBRARIES.items() if re.search(pattern, calls)]
    built = folder / mode / f".{MODULE}.so"
    _link(
        tools,
        [*objects, *module, *_runtime(tools, mode, torch_allocator=True, libraries=libraries)],
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
        key = _digest(own, file_sha256(mirrored[source]), *command)
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


def _torch_prelude(tools: _Tools, headers: Sequence[str], say: Callable[[str], None]) -> Path:
    """The header to include before every binding, precompiled in the user's cache where there is one."""
    text = f"#include <{headers[0]}>\n" if headers else ""
    text = "".join(f"#include <{name}>\n" for name in headers)
    flags = _host_flags(tools)
    key = _digest(
        text,
        *flags,
        digest_of({name: HERE / "include" / name for name in _PRELUDE_FILES}),
        tools.compiler.described,
        tools.torch.version,
        str(tools.torch.root),
        str(tools.nvcc.include),
    )[:24]
    cache = cache_folder()
    if cache is None:
        return HERE / "include/sim/torch_prelude.h"
    folder = writable_folder(cache / "sim" / f"prelude-{key}")
    header = folder / "prelude.h"
    if (folder / "prelude.h.gch").exists():
        return header
    with locked(folder / "lock", say):
        if not (folder / "prelude.h.gch").exists():
            say("precompiling torch's headers for the simulator (once)")
            write_text(folder / "more.h", text)
            more = f'#define SIM_MORE_TORCH_HEADERS "{folder / "more.h"}"\n' if headers else ""
            write_text(header, f"{more}#include <sim/torch_prelude.h>\n")
            made = folder / ".prelude.h.gch"
            command = [
                *tools.compiler.command,
                *flags,
                *tools.include,
                "-x",
                "c++-header",
                str(header),
                "-o",
                str(made),
            ]
            _run_all([(command, made, header)])
            os.replace(made, folder / "prelude.h.gch")
    return header


def _module_object(tools: _Tools, mode: str, facts: dict[str, object], folder: Path) -> list[Path]:
    source = folder / mode / "facts.cpp"
    literal = json.dumps(facts).replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    name = "cuda_extension_build_facts[]"
    text = f'extern "C" {{\nextern const char {name};\nconst char {name} = "{literal}";\n}}\n'
    write_text(source, text, only_if_changed=True)
    made = source.with_suffix(".o")
    module = folder / mode / "module.o"
    name = f'-DSIM_MODE_NAME="{mode}"'
    _run_all(
        [
            ([*tools.compiler.command, *_COMMON, "-c", str(source), "-o", str(made)], made, source),
            (
                [
                    *tools.compiler.command,
                    *_COMMON,
                    name,
                    *tools.include,
                    "-c",
                    str(HERE / "runtime/module.cpp"),
                    "-o",
                    str(module),
                ],
                module,
                HERE / "runtime/module.cpp",
            ),
        ]
    )
    return [made, module]


def _runtime(tools: _Tools, mode: str, torch_allocator: bool, libraries: Sequence[str] = ()) -> list[Path]:
    """Objects of the runtime for `mode`, compiled once per machine and content."""
    cache = cache_folder()
    if cache is None:
        raise CannotTell(
            "no cache folder can be had for the simulator's runtime; set XDG_CACHE_HOME to a folder you can write in"
        )
    flags = [
        *_COMMON,
        *_machine_flags(),
        "-O2",
        "-g1",
        "-gdwarf-4",
        f"-DSIM_MODE={MODES.index(mode)}",
        f'-DSIM_FOLDER="{HERE}/"',
    ]
    own = digest_of(
        {
            path.relative_to(HERE).as_posix(): path
            for name in ("include", "runtime", "libs")
            for path in (HERE / name).rglob("*.*")
        }
    )
    key = _digest(
        *flags, own, tools.compiler.described, tools.torch.version, str(tools.torch.root), str(tools.nvcc.include)
    )[:24]
    folder = writable_folder(cache / "sim" / f"runtime-{mode}-{key}")
    names = ["scheduler", "grid", "shared", "limits", "faults", "reports", "heap", "api", "race", "sanitizer"] + (
        ["torch"] if torch_allocator and mode != "plain" else []
    )
    paths = [HERE / "runtime" / f"{name}.cpp" for name in names] + [HERE / "libs" / f"{name}.cpp" for name in libraries]
    objects = [folder / f"{path.stem}.o" for path in paths]
    with locked(folder / "lock", lambda text: None):
        tasks = []
        for path, made in zip(paths, objects, strict=True):
            if made.exists():
                continue
            tasks.append(
                ([*tools.compiler.command, *flags, *tools.include, "-c", str(path), "-o", str(made)], made, path)
            )
        _run_all(tasks)
    return objects


def _run_all(tasks: Sequence[tuple[list[str], Path, Path]]) -> None:
    """Runs compilers side by side. Raises No with the first error in a user's file, or CannotTell for one of ours."""
    if not tasks:
        return

    def run(task: tuple[list[str], Path, Path]) -> tuple[int, str]:
        command, made, _ = task
        # Compiled aside and renamed: an object is there whole or not at all.
        aside = made.with_name(f".{made.name}.{os.getpid()}")
        command = [str(aside) if word == str(made) else word for word in command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        except OSError as error:
            return 1, f"{command[0]} does not run: {error}"
        if done.returncode == 0:
            os.replace(aside, made)
        else:
            aside.unlink(missing_ok=True)
        return done.returncode, done.stderr

    with ThreadPoolExecutor(jobs()) as pool:
        results = list(pool.map(run, tasks))
    for (_, _, source), (code, log) in zip(tasks, results, strict=True):
        if code == 0:
            continue
        first = next(
            (line for line in log.splitlines() if re.search(r"\b(fatal )?error\b:", line)), log.strip().splitlines()[:1]
        )
        text = first if isinstance(first, str) else " ".join(first)
        if source.is_relative_to(HERE):
            raise CannotTell(f"a part of the simulator does not compile here ({source.name}): {text}")
        raise No(f"{source.name} does not compile for the simulator: {text}")


def _link(tools: _Tools, objects: Sequence[Path], target: Path, mode: str, torch: bool) -> None:
    libraries = (
        [str(tools.torch.lib / f"lib{name}.so") for name in ("c10", "torch", "torch_cpu", "torch_python")]
        if torch
        else []
    )
    command = [
        *tools.compiler.command,
        "-shared",
        "-Wl,-Bsymbolic",
        "-o",
        str(target),
        *map(str, objects),
        *libraries,
        *([f"-Wl,-rpath,{tools.torch.lib}"] if torch else []),
        "-lpthread",
        "-ldl",
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        lines = [
            line for line in done.stderr.splitlines() if "undefined" in line or "multiple" in line
        ] or done.stderr.splitlines()
        raise No(f"the simulated module does not link: {lines[0] if lines else 'the linker failed'}")
    _refuse_undefined(tools, target, torch)


def _refuse_undefined(tools: _Tools, target: Path, torch: bool) -> None:
    """What the module wants of CUDA and the simulator does not have; and whatever nobody has."""
    names = _undefined(target)
    missing = [name for name in names if _NOT_SIMULATED.match(name)]
    if missing:
        shown = ", ".join(sorted(missing)[:5]) + (" ..." if len(missing) > 5 else "")
        raise CannotTell(
            f"the simulator has no {shown}; verify on a GPU, or keep these calls out of what the simulator is to run"
        )
    if not torch:
        return
    done = subprocess.run(["ldd", "-r", str(target)], capture_output=True, text=True, errors="replace")
    lost = [
        m[1]
        for m in re.finditer(r"undefined symbol: (\S+)", done.stdout + done.stderr)
        if not m[1].startswith(("_Py", "Py", "__asan", "__sanitizer"))
    ]
    lost = [name for name in lost if name in names]
    if lost:
        pretty = (
            subprocess.run(["c++filt", lost[0]], capture_output=True, text=True).stdout.strip()
            if shutil.which("c++filt")
            else lost[0]
        )
        raise No(f"{pretty} is declared but defined in no file of kernels/")


def _undefined(target: Path) -> list[str]:
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", str(target)], capture_output=True, text=True, errors="replace"
    )
    return [line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.split()]


__all__ = [
    "HEADER_SUFFIXES",
    "MODES",
    "build_simulated",
    "build_sources",
    "environment",
    "included_files",
    "simulator_digest",
]
