"""The host compiler at work for the simulator: its flags by mode, the runtime's objects, linking.

The runtime's objects and the precompiled torch header lie in the user's cache, by content: all workspaces share them.
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

from utils.build.digest import digest_of
from utils.build.flags import jobs, system_include_folders
from utils.build.storage import cache_folder, locked, writable_folder, write_text
from utils.build.toolchain import HostCompiler, Nvcc, Torch, find_host_compiler, find_nvcc, find_python_torch
from utils.present.outcome import CannotTell, No

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

# What the precompiled torch header is made of, of the simulator's own.
_PRELUDE_FILES = [
    "sim/torch_prelude.h",
    "sim/core.h",
    "sim/switch.h",
    "sim/api.h",
    "cuda_runtime.h",
    *sorted(
        path.relative_to(HERE / "include").as_posix()
        for name in ("c10", "ATen")
        for path in (HERE / "include" / name).rglob("*.h")
    ),
]


@dataclass(frozen=True)
class Tools:
    """The torch, nvcc (for its headers) and host compiler of one build."""

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


def simulator_digest() -> str:
    """SHA-256 over the simulator's own files: a module built by another simulator is not up to date."""
    wanted = sorted(path for path in HERE.rglob("*") if path.suffix in (".py", ".h", ".hpp", ".cpp"))
    return digest_of({path.relative_to(HERE).as_posix(): path for path in wanted})


def find_tools() -> Tools:
    """This machine's tools. Raises CannotTell where one is missing."""
    torch = find_python_torch()
    return Tools(torch, find_nvcc(torch), find_host_compiler())


def key_of(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def machine_flags() -> list[str]:
    """x86-64-v3 where this machine has it: fused multiply-add and half conversions in hardware."""
    if platform.machine() != "x86_64":
        return []
    try:
        known = set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())  # type: ignore[index]
    except (OSError, TypeError):
        return []
    return ["-march=x86-64-v3"] if {"avx2", "fma", "f16c", "bmi2", "movbe"} <= known else []


def kernel_command(
    tools: Tools, mode: str, source: Path, made: Path, own: Sequence[Path | str], visible: bool = False
) -> list[str]:
    return [
        *tools.compiler.command,
        *_COMMON,
        *(["-fvisibility=default"] if visible else []),
        *machine_flags(),
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


def host_flags(tools: Tools) -> list[str]:
    return [*_COMMON, *machine_flags(), "-O1", "-DSIM_MODE=0", "-DSIM_HOST_ONLY", "-DNDEBUG"]


def torch_prelude(tools: Tools, headers: Sequence[str], say: Callable[[str], None]) -> Path:
    """The header to include before every binding, precompiled in the user's cache where there is one."""
    text = f"#include <{headers[0]}>\n" if headers else ""
    text = "".join(f"#include <{name}>\n" for name in headers)
    flags = host_flags(tools)
    key = key_of(
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
            run_all([(command, made, header)])
            os.replace(made, folder / "prelude.h.gch")
    return header


def module_object(tools: Tools, mode: str, facts: dict[str, object], folder: Path) -> list[Path]:
    source = folder / mode / "facts.cpp"
    literal = json.dumps(facts).replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    name = "cuda_extension_build_facts[]"
    text = f'extern "C" {{\nextern const char {name};\nconst char {name} = "{literal}";\n}}\n'
    write_text(source, text, only_if_changed=True)
    made = source.with_suffix(".o")
    module = folder / mode / "module.o"
    name = f'-DSIM_MODE_NAME="{mode}"'
    run_all(
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


def runtime(tools: Tools, mode: str, torch_allocator: bool, libraries: Sequence[str] = ()) -> list[Path]:
    """Objects of the runtime for `mode`, compiled once per machine and content."""
    cache = cache_folder()
    if cache is None:
        raise CannotTell(
            "no cache folder can be had for the simulator's runtime; set XDG_CACHE_HOME to a folder you can write in"
        )
    flags = [
        *_COMMON,
        *machine_flags(),
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
    key = key_of(
        *flags, own, tools.compiler.described, tools.torch.version, str(tools.torch.root), str(tools.nvcc.include)
    )[:24]
    folder = writable_folder(cache / "sim" / f"runtime-{mode}-{key}")
    left_out = {"module"} if torch_allocator and mode != "plain" else {"module", "torch"}
    paths = [path for path in sorted((HERE / "runtime").glob("*.cpp")) if path.stem not in left_out]
    paths += [path for name in libraries for path in sorted((HERE / "libs").glob(f"{name}*.cpp"))]
    objects = [folder / f"{path.stem}.o" for path in paths]
    with locked(folder / "lock", lambda text: None):
        tasks = []
        for path, made in zip(paths, objects, strict=True):
            if made.exists():
                continue
            tasks.append(
                ([*tools.compiler.command, *flags, *tools.include, "-c", str(path), "-o", str(made)], made, path)
            )
        run_all(tasks)
    return objects


def run_all(tasks: Sequence[tuple[list[str], Path, Path]]) -> None:
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


def link(tools: Tools, objects: Sequence[Path], target: Path, mode: str, torch: bool) -> None:
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


def _refuse_undefined(tools: Tools, target: Path, torch: bool) -> None:
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
