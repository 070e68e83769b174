"""What a build needs from the machine: torch (without importing it), nvcc, the host compiler, ninja, CUDA libraries.

Everything is found as files; compilers are asked for their version once and remembered by the caller (`describe`).
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from utils.build.architectures import parse_arch_list
from utils.build.gpus import visible_gpus
from utils.present.outcome import CannotTell

__all__ = [
    "HostCompiler",
    "Nvcc",
    "Torch",
    "find_host_compiler",
    "find_libraries",
    "find_ninja",
    "find_nvcc",
    "find_python_torch",
    "parse_arch_list",
    "visible_gpus",
]

OLDEST_TORCH = (2, 9)
_OR_SETUP = "or run `python3 -m utils.setup`"
MODULE = "cuda_extension"


@dataclass(frozen=True)
class Torch:
    """The torch of the running interpreter, as files."""

    python: Path
    root: Path
    version: str
    cuda: str
    python_include: Path
    extension_suffix: str

    @property
    def include(self) -> list[Path]:
        return [self.root / "include", self.root / "include/torch/csrc/api/include"]

    @property
    def lib(self) -> Path:
        return self.root / "lib"

    @property
    def site_packages(self) -> Path:
        return self.root.parent


@dataclass(frozen=True)
class Nvcc:
    """An nvcc: the path to call, the toolkit around it, its version ("13.0.88") and the machine codes it makes."""

    path: Path
    root: Path
    found_by: str
    version: str = ""
    supported: tuple[str, ...] = ()

    @property
    def include(self) -> Path:
        return self.root / "include"

    @property
    def described(self) -> str:
        return f"nvcc {self.version} ({self.path})"


@dataclass(frozen=True)
class HostCompiler:
    """The C++ compiler: the words of its command, its version ("12.2.0"), and whether it is GNU (has .gch headers)."""

    command: tuple[str, ...]
    path: Path
    version: str = ""
    gnu: bool = False
    # What nvcc is given with -ccbin
    for_nvcc: str = ""
    # The faster linker to ask for (see linker.py); "" for the compiler's own.
    linker: str = ""

    @property
    def described(self) -> str:
        return f"{' '.join(self.command)} {self.version}"


@dataclass(frozen=True)
class Libraries:
    """Files to link with, their folders (for the module's run path) and the names that were not found."""

    files: tuple[Path, ...]
    folders: tuple[Path, ...]
    missing: tuple[str, ...] = field(default=())


def find_python_torch() -> Torch:
    """The CUDA build of torch that the running interpreter would import. Raises CannotTell when there is none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        raise CannotTell(
            f"{sys.executable} has no torch; activate an environment with a CUDA build of PyTorch >= 2.9, {_OR_SETUP}"
        )
    root = Path(spec.origin).parent
    try:
        text = (root / "version.py").read_text()
    except OSError:
        raise CannotTell(f"torch in {root} has no version.py; reinstall it") from None
    version = _assigned(text, "__version__") or "unknown"
    cuda = _assigned(text, "cuda")
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if not cuda:
        raise CannotTell(
            f"torch {version} in {root} is built without CUDA; install a CUDA build of PyTorch >= 2.9, {_OR_SETUP}"
        )
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        raise CannotTell(f"torch {version} in {root} is too old; install PyTorch >= 2.9, {_OR_SETUP}")
    include = Path(sysconfig.get_path("include"))
    number = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not (include / "Python.h").exists():
        raise CannotTell(
            f"Python.h is not in {include}; install the development headers of Python {number} "
            f"(Debian, Ubuntu: apt install python{number}-dev)"
        )
    return Torch(Path(sys.executable), root, version, cuda, include, importlib.machinery.EXTENSION_SUFFIXES[0])


def _assigned(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}\s*(?::[^=\n]*)?=\s*['\"]([^'\"]*)['\"]", text, re.M)
    return match[1] if match else None


def _nvcc_candidates(torch: Torch | None) -> list[tuple[Path, str]]:
    found = []
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            found.append((Path(os.environ[variable]) / "bin/nvcc", variable))
    on_path = shutil.which("nvcc")
    if on_path:
        found.append((Path(on_path), "PATH"))
    found.append((Path("/usr/local/cuda/bin/nvcc"), "/usr/local/cuda"))
    if torch:
        major = torch.cuda.split(".")[0]
        for folder in (f"nvidia/cu{major}", "nvidia/cuda_nvcc"):
            found.append((torch.site_packages / folder / "bin/nvcc", "the toolkit's wheels"))
    return [(path, by) for path, by in found if os.access(path, os.X_OK) and path.is_file()]


def find_nvcc(torch: Torch | None) -> Nvcc:
    """The nvcc to use: CUDA_HOME, PATH, the usual prefix, then the toolkit's wheels beside torch. Not yet asked for its
    version (see `describe_nvcc`). Raises CannotTell when there is none."""
    candidates = _nvcc_candidates(torch)
    if not candidates:
        wanted = f" {torch.cuda}" if torch else ""
        raise CannotTell(
            f"nvcc was not found (CUDA_HOME, PATH, /usr/local/cuda, the toolkit's wheels); install CUDA{wanted}, set "
            f"CUDA_HOME, {_OR_SETUP}, which installs the wheels"
        )
    path, by = candidates[0]
    return Nvcc(path, _toolkit_root(path), by)


def idle_cuda_home(environment: Mapping[str, str] = os.environ) -> str | None:
    """A warning when CUDA_HOME is set to a place without nvcc, which then comes from elsewhere."""
    home = environment.get("CUDA_HOME", "")
    if home and not os.access(Path(home) / "bin/nvcc", os.X_OK):
        return f"CUDA_HOME={home} has no bin/nvcc; another one is used"
    return None


def _toolkit_root(nvcc: Path) -> Path:
    """The folder with include/cuda_runtime.h that belongs to `nvcc`, which may be a link or a wrapper script."""
    for folder in (nvcc.parent.parent, nvcc.resolve().parent.parent):
        if (folder / "include/cuda_runtime.h").exists():
            return folder
    try:
        answer = subprocess.run(
            [str(nvcc), "--dryrun", "-c", "x.cu"], capture_output=True, text=True, timeout=60
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return nvcc.parent.parent
    top = re.search(r"^#\$ TOP=(.*)$", answer, re.M)
    return Path(os.path.normpath(top[1])) if top else nvcc.parent.parent


def describe_nvcc(nvcc: Nvcc) -> dict[str, Any]:
    """What nvcc says of itself: {"version", "supported"}. Raises CannotTell when it does not run."""
    version = re.search(r"release (\d+\.\d+)(?:, V([\d.]+))?", _ask([str(nvcc.path), "--version"], "nvcc"))
    if not version:
        raise CannotTell(f"{nvcc.path} --version does not name a release; set CUDA_HOME to a CUDA toolkit")
    supported = re.findall(r"sm_\d+", _ask([str(nvcc.path), "--list-gpu-code"], "nvcc", check=False))
    return {"version": version[2] or version[1], "supported": supported}


def check_versions(nvcc: Nvcc, torch: Torch) -> str | None:
    """Raises CannotTell when nvcc and torch are of different CUDA major versions; a warning for another minor one."""
    ours, theirs = nvcc.version.split("."), torch.cuda.split(".")
    if ours[0] != theirs[0]:
        others = [str(path.parent.parent) for path, _ in _nvcc_candidates(torch) if path != nvcc.path]
        hint = f" (another nvcc: {others[0]})" if others else ""
        raise CannotTell(
            f"nvcc is of CUDA {nvcc.version} ({nvcc.path}, found by {nvcc.found_by}), "
            f"torch {torch.version} of CUDA {torch.cuda}; set CUDA_HOME to a CUDA {theirs[0]} toolkit{hint}"
        )
    if ours[:2] != theirs[:2]:
        return f"nvcc is of CUDA {nvcc.version}, torch of CUDA {torch.cuda}: usually fine within one major version"
    return None


def find_host_compiler(environment: Mapping[str, str] = os.environ) -> HostCompiler:
    """CXX, else g++, c++ or clang++ on PATH; NVCC_CCBIN, else the same, for nvcc. Raises CannotTell without one."""
    command = shlex.split(environment.get("CXX", ""))
    source = f"CXX={environment.get('CXX', '')}"
    if not command:
        command = [next((name for name in ("g++", "c++", "clang++") if shutil.which(name)), "g++")]
        source = "no C++ compiler"
    # `CXX="ccache g++"`: nvcc wants the compiler itself.
    path = shutil.which(command[0])
    compiler = command[1] if Path(command[0]).name in ("ccache", "sccache") and len(command) > 1 else command[0]
    if path is None or shutil.which(compiler) is None:
        raise CannotTell(
            f"{source}: {compiler} was not found; install g++ (Debian, Ubuntu: apt install g++) or set CXX"
        )
    ccbin = environment.get("NVCC_CCBIN") or compiler
    if shutil.which(ccbin) is None:
        raise CannotTell(f"NVCC_CCBIN={ccbin} was not found; set it to a C++ compiler or unset it")
    return HostCompiler(tuple(command), Path(path).resolve(), for_nvcc=ccbin)


def describe_host_compiler(compiler: HostCompiler) -> dict[str, Any]:
    """What the compiler says of itself: {"version", "gnu"}. Raises CannotTell when it does not run."""
    # `--version` of g++ says its name, which may be anything (c++, x86_64-conda-linux-gnu-c++); the macros do not lie.
    macros = _ask([*compiler.command, "-dM", "-E", "-x", "c++", "/dev/null"], compiler.command[0])
    version = [
        re.search(rf"#define {name} (\d+)", macros) for name in ("__GNUC__", "__GNUC_MINOR__", "__GNUC_PATCHLEVEL__")
    ]
    clang = re.search(r'#define __clang_version__ "([\d.]+)', macros)
    if clang:
        return {"version": clang[1], "gnu": False}
    return {"version": ".".join(part[1] for part in version if part), "gnu": all(version)}


def _ask(command: list[str], name: str, check: bool = True) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotTell(f"{name} does not run ({' '.join(command)}): {error}") from None
    if check and done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise CannotTell(
            f"{name} does not run ({' '.join(command)}): {said[0] if said else f'exit code {done.returncode}'}"
        )
    return done.stdout


def find_ninja() -> Path:
    """ninja beside the interpreter (which may be called by its path alone), in its Python package, or on PATH.

    PATH comes last: where it leads depends on the shell, and another version of ninja compiles everything again.
    """
    folders = [Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]
    spec = importlib.util.find_spec("ninja")
    if spec and spec.origin:
        package = Path(spec.origin).parent
        folders += [package, package / "data/bin", package / "bin"]
    on_path = shutil.which("ninja") or shutil.which("ninja-build")
    candidates = [folder / "ninja" for folder in folders] + ([Path(on_path)] if on_path else [])
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise CannotTell(
        f"ninja was not found (beside {sys.executable}, its Python package, PATH); install it: "
        f"{sys.executable} -m pip install ninja, or apt install ninja-build"
    )


# What a kernel or a binding may call: torch for tensors, the CUDA runtime, GEMM and convolution libraries.
TORCH_LIBRARIES = ("c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda")
CUDA_LIBRARIES = ("cudart", "cublas", "cublasLt", "cudnn")


def wheel_folders(torch: Torch, kind: str) -> list[Path]:
    """The folders named `kind` ("lib", "include") of the CUDA libraries' wheels beside torch, of all layouts in use."""
    major = torch.cuda.split(".")[0]
    names = (f"cu{major}", "cudnn", "cublas", "cuda_runtime", "cuda_cudart")
    folders = [torch.site_packages / "nvidia" / name / kind for name in names]
    return [folder for folder in folders if folder.is_dir()]


def find_libraries(torch: Torch, nvcc: Nvcc) -> Libraries:
    """The shared libraries to link with. Torch's own CUDA libraries come first: they are the ones loaded at run time.

    The wheels have only libX.so.N, without the libX.so that -lX wants, so files are linked by their full path.
    """
    files = [torch.lib / f"lib{name}.so" for name in TORCH_LIBRARIES]
    absent = [str(path) for path in files if not path.exists()]
    if absent:
        raise CannotTell(f"torch {torch.version} is incomplete: {absent[0]} is missing; reinstall torch")
    major = torch.cuda.split(".")[0]
    folders = [
        *wheel_folders(torch, "lib"),
        torch.lib,
        nvcc.root / "lib64",
        nvcc.root / "lib",
        nvcc.root / "targets/x86_64-linux/lib",
        Path("/usr/lib/x86_64-linux-gnu"),
    ]
    missing = []
    for name in CUDA_LIBRARIES:
        # A toolkit of another CUDA may be installed too: its runtime must not slip in.
        pattern = f"lib{name}.so.*" if name == "cudnn" else f"lib{name}.so.{major}*"
        file = next((found[0] for folder in folders if (found := sorted(folder.glob(pattern)))), None)
        if file is None:
            missing.append(name)
        else:
            files.append(file)
    return Libraries(tuple(files), tuple(dict.fromkeys(file.parent for file in files)), tuple(missing))
