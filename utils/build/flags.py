"""The flags of every compilation and of the link: the one list that the ninja file and setup.py both take.

What is left out is as deliberate as what is in:
- no --use_fast_math: it changes results (flushed denormals, approximate division, NaN rules) in every kernel at once;
  a kernel that wants a fast function calls it by name (__expf, __fdividef, ...).
- none of torch's -D__CUDA_NO_HALF_OPERATORS__ and relatives: half and bfloat16 arithmetic works as in plain nvcc.
- no NDEBUG in .cu files: an assert() in a kernel is there because its author wants it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.build.architectures import Architecture
from utils.build.sources import include_folders
from utils.build.toolchain import Libraries, Nvcc, Torch, wheel_folders
from utils.present.outcome import CannotTell
from utils.problem.workspace import Workspace

STANDARD = "-std=c++17"

# Hidden symbols: two modules in one process keep their registries apart, and the link finds what is really undefined.
_HOST = [STANDARD, "-fPIC", "-fvisibility=hidden", "-DNDEBUG", "-Wall"]

# A binding is glue, run once a call, and most of its compilation is code that pybind11's headers put into every file:
# -O1 compiles it a second faster than -O2, and GCC's -Og a fifth faster than -O1. Of what -Og leaves out, a call feels
# two things, which are put back: small objects (tensor handles, array references) dissolved into registers, and
# functions of one caller inlined. With them a call's own work on the host takes a tenth longer than at -O1 (1.6 against
# 1.4 us for three tensors, checks and the result's allocation), without them a quarter. Where cc1plus collects garbage
# only when really large, torch's headers parse in four fifths of the time (1.2 instead of 1.0 GB of memory).
_BINDING_ONLY = ["-O1"]
_GNU_BINDING = [
    *("-Og", "-ftree-sra", "-finline-functions-called-once"),
    *("--param", "ggc-min-expand=1000", "--param", "ggc-min-heapsize=4000000"),
]
_HELPER_ONLY = ["-O2"]

_NVCC = [
    "-O3",
    STANDARD,
    "-lineinfo",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-Xcompiler",
    "-fPIC,-fvisibility=hidden",
    # Registers, spills and shared memory of each kernel, which the build shows as a table.
    "-Xptxas",
    "-v",
]


def binding_flags(gnu: bool) -> list[str]:
    """Flags of binding.cpp and *_binding.cpp; `gnu` says whether the compiler is GCC."""
    return [*_HOST, *(_GNU_BINDING if gnu else _BINDING_ONLY)]


def helper_flags() -> list[str]:
    """Flags of the other .cpp files: host code that calls cuBLAS and cuDNN."""
    return [*_HOST, *_HELPER_ONLY]


def nvcc_flags(architectures: Sequence[Architecture]) -> list[str]:
    """Flags of .cu files."""
    return [*_NVCC, *(flag for each in architectures for flag in each.gencode())]


def own_include_flags(folders: Sequence[Path | str]) -> list[str]:
    return [flag for folder in folders for flag in ("-I", str(folder))]


def system_include_folders(torch: Torch, nvcc: Nvcc) -> list[Path]:
    """Headers that are not ours, for g++: torch, cuDNN, CUDA, Python. Torch's cuDNN comes before the toolkit's."""
    wheels = wheel_folders(torch, "include")
    cudnn = [folder for folder in wheels if folder.parent.name == "cudnn"]
    others = [folder for folder in wheels if folder not in cudnn]
    cccl = [folder for folder in (nvcc.include / "cccl",) if folder.is_dir()]
    return [*torch.include, *cudnn, nvcc.include, *cccl, *others, torch.python_include]


def cuda_include_folders(torch: Torch, nvcc: Nvcc) -> list[Path]:
    """The same for nvcc, which knows its own headers."""
    wheels = wheel_folders(torch, "include")
    return [folder for folder in wheels if folder.parent.name == "cudnn"] + [
        folder for folder in wheels if folder.parent.name != "cudnn" and folder != nvcc.include
    ]


def own_include_folders(workspace: Workspace) -> list[Path]:
    """Our headers, for every compiler: see sources.include_folders."""
    return include_folders(workspace)


def linker_flags(linker: str) -> list[str]:
    """Which linker ("" for the compiler's own), and what it does about undefined symbols.

    -z defs wants every symbol defined, at the link instead of at import; Python's own symbols come from the interpreter
    and may be in no library at all, so unresolved ones are reported as warnings, which `link.undefined_symbols` reads.
    """
    return [*([f"-fuse-ld={linker}"] if linker else []), "-Wl,-z,defs", "-Wl,--warn-unresolved-symbols"]


def link_flags(libraries: Libraries, linker: str) -> list[str]:
    """Flags and files of the link, after the objects."""
    return [*linker_flags(linker), *library_flags(libraries)]


def library_flags(libraries: Libraries) -> list[str]:
    """The libraries by their files, those used only, and where the module looks for them when it is loaded."""
    return [
        "-Wl,--as-needed",
        # The C++ library torch uses, by its file: a compiler without the shared one beside it would quietly link a
        # static copy, and the first exception with a tensor's shape in its message would crash between the two.
        "-l:libstdc++.so.6",
        *(str(file) for file in libraries.files),
        *(word for folder in libraries.folders for word in ("-Xlinker", "-rpath", "-Xlinker", str(folder))),
    ]


def jobs(environment: dict[str, str] | os._Environ[str] = os.environ) -> int:
    """How many compilers run at once: MAX_JOBS, else one for each usable core with 1.5 GB of free memory."""
    text = environment.get("MAX_JOBS", "").strip()
    if text:
        if not re.fullmatch(r"[1-9]\d{0,3}", text):
            raise CannotTell(f"MAX_JOBS={text} is not a number of jobs; set it to 1 or more, or unset it")
        return int(text)
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    free = available_memory()
    return max(1, min(cores, int(free / 1.5e9))) if free else max(1, cores)


def available_memory() -> int:
    """Bytes of memory a new process may take, 0 where unknown: the kernel's estimate, bounded by the control group."""
    try:
        match = re.search(r"^MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
        free = int(match[1]) * 1024 if match else 0
    except OSError:
        return 0
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit.isdigit():
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            statistics = Path("/sys/fs/cgroup/memory.stat").read_text()
            cached = re.search(r"^inactive_file (\d+)$", statistics, re.M)
            free = min(free, int(limit) - used + (int(cached[1]) if cached else 0))
    except (OSError, ValueError):
        pass
    return max(free, 1)
