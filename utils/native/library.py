"""Builds the native library where it is not in the cache yet, and loads it.

The cache folder is named by a digest of the sources, the flags, the compilers' versions and the architectures, so a
library found there is the one that would be built. Builders wait for each other on a lock file, build in a folder of
their own and move the result into place in one step.

The library holds a static CUDA runtime. It shares torch's primary context, so pointers and stream handles pass freely
between the two, while its error state stays its own: a launch error that a solution left behind in torch's runtime is
neither swallowed by our calls nor taken for one of ours (`utils.native.device.pending_errors` looks at theirs).

    python -m utils.native.library            build for this machine and print the path
    python -m utils.native.library --arch 9.0 build the CUDA library for an architecture that need not be here
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_char_p, c_double, c_int32, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from utils.build.gpus import visible_gpus
from utils.build.storage import cache_folder
from utils.build.toolchain import Torch, find_host_compiler, find_nvcc, find_python_torch
from utils.present.outcome import YES, CannotTell, run

SOURCES = Path(__file__).resolve().parent / "src"
LIBRARY_NAME = "libworkbench_native.so"
OVERRIDE = "KERNEL_WORKBENCH_NATIVE"

# -ffp-contract=off: the comparison's bound must round as torch.isclose does (tally.h).
HOST_FLAGS = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-pthread", "-Wall", "-Wextra"]
DEVICE_FLAGS = ["-std=c++17", "-O3", "-lineinfo", "-Xcompiler", "-fPIC,-fvisibility=hidden,-ffp-contract=off,-Wall"]

# The C ABI. Pointers to structs go as c_void_p, which takes byref(); every int32 result is a status.
SIGNATURES: dict[str, list[Any]] = {
    "native_compare_cpu": [c_void_p, c_void_p, c_void_p],
    "native_locate_cpu": [c_void_p, c_void_p, c_void_p],
    "native_poison_cpu": [c_void_p, c_int64, c_int32, c_uint64],
    "native_damage_cpu": [c_void_p, c_int32, c_void_p],
    "native_count_poison_cpu": [c_void_p, c_int32, c_uint64, c_void_p],
    "native_summary_cpu": [c_void_p, c_void_p],
    "native_flush_cpu": [],
}
CUDA_SIGNATURES: dict[str, list[Any]] = {
    "native_compare_cuda": [c_int32, c_void_p, c_void_p, c_void_p, c_void_p],
    "native_locate_cuda": [c_int32, c_void_p, c_void_p, c_void_p, c_void_p],
    "native_poison_cuda": [c_int32, c_void_p, c_void_p, c_int64, c_int32, c_uint64],
    "native_damage_cuda": [c_int32, c_void_p, c_void_p, c_int32, c_void_p],
    "native_count_poison_cuda": [c_int32, c_void_p, c_void_p, c_int32, c_uint64, c_void_p],
    "native_summary_cuda": [c_int32, c_void_p, c_void_p, c_void_p],
    "native_arena_create": [c_int32, c_int64, c_void_p],
    "native_arena_attach": [c_int32, c_int32, c_int64, c_void_p],
    "native_arena_release": [c_void_p],
    "native_device_facts": [c_int32, c_void_p],
    "native_flush_l2": [c_int32, c_void_p],
    "native_delay": [c_int32, c_void_p, c_double],
    "native_events_create": [c_int32, c_int32, c_void_p],
    "native_events_destroy": [c_int32, c_int32, c_void_p],
    "native_event_record": [c_int32, c_void_p, c_void_p],
    "native_event_elapsed": [c_int32, c_void_p, c_void_p, c_void_p],
    "native_stream_idle": [c_int32, c_void_p, c_void_p],
    "native_synchronize_stream": [c_int32, c_void_p],
    "native_synchronize_device": [c_int32],
    "native_pending_errors": [c_char_p, c_int64],
    "native_copy_bandwidth": [c_int32, c_int64, c_int32, c_void_p],
}


class NativeError(RuntimeError):
    """A call into the native library failed; `code` is negative for its own errors (platform.h), else CUDA's."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


OUT_OF_MEMORY = -2
NOT_SUPPORTED = -4


@functools.cache
def visible_architectures() -> tuple[str, ...]:
    """Compute capabilities of the GPUs this process may use, as "9.0"; empty without a driver, a GPU or an nvcc."""
    found = {gpu.capability for gpu in visible_gpus()}
    try:
        if found:
            find_nvcc(_torch())
    except CannotTell:
        return ()
    return tuple(f"{major}.{minor}" for major, minor in sorted(found))


def _torch() -> Torch | None:
    """The torch beside which the toolkit's wheels may lie; any torch will do for us, and none as well."""
    try:
        return find_python_torch()
    except CannotTell:
        return None


def _version(command: Sequence[str]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def _plan(architectures: Sequence[str]) -> tuple[str, list[list[str]], list[str]]:
    """(digest, one compile command per source without its output, link command without objects and output)."""
    host = find_host_compiler()
    versions = _version(host.command)
    compiles = [[*host.command, *HOST_FLAGS, "-c", str(source)] for source in sorted(SOURCES.glob("*.cpp"))]
    link = [*host.command, "-shared", "-pthread"]
    if architectures:
        nvcc = [str(find_nvcc(_torch()).path), "-ccbin", host.for_nvcc]
        versions += _version(nvcc[:1])
        targets = []
        for architecture in architectures:
            number = architecture.replace(".", "")
            targets += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
        compiles = [[*command, "-DNATIVE_CUDA"] for command in compiles]
        compiles += [
            [*nvcc, *DEVICE_FLAGS, *targets, "-c", str(source), "-DNATIVE_CUDA"]
            for source in sorted(SOURCES.glob("*.cu"))
        ]
        # The static runtime's symbols stay inside: nothing else in the process may end up calling it.
        link = [*nvcc, "-shared", "-cudart", "static", "-Xlinker", "--exclude-libs,ALL", *targets]
    digest = hashlib.sha256(versions.encode())
    for command in [*compiles, link]:
        digest.update(
            "\0".join(Path(part).name if part.startswith(str(SOURCES)) else part for part in command).encode()
        )
    for source in sorted(SOURCES.iterdir()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:24], compiles, link


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise CannotTell(f"the native core does not build; the compiler said:\n{said}\nfrom: {' '.join(command)}")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(architectures: Sequence[str] | None = None) -> Path:
    """The built library in the cache. `architectures` ("9.0", ...) makes a CUDA library for them, an empty sequence the
    CPU-only one; by default it is what this machine's GPUs are. Raises CannotTell with the compiler's words."""
    digest, compiles, link = _plan(visible_architectures() if architectures is None else architectures)
    cache = cache_folder()
    if cache is None:
        raise CannotTell("there is no place for the native core; set XDG_CACHE_HOME to a writable folder of your own")
    root = cache / "native"
    root.mkdir(mode=0o700, exist_ok=True)
    target = root / digest / LIBRARY_NAME
    if target.is_file():
        return target
    with _locked(root / f"{digest}.lock"):
        if target.is_file():
            return target
        with tempfile.TemporaryDirectory(dir=root, prefix=f"{digest}.") as scratch:
            objects = [str(Path(scratch) / f"{number}.o") for number in range(len(compiles))]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                list(pool.map(_run, [[*command, "-o", made] for command, made in zip(compiles, objects, strict=True)]))
            made = Path(scratch) / LIBRARY_NAME
            _run([*link, *objects, "-o", str(made)])
            target.parent.mkdir(mode=0o755, exist_ok=True)
            made.chmod(0o755)
            made.replace(target)
    return target


def path() -> Path:
    """Where the library is, building it first if need be. KERNEL_WORKBENCH_NATIVE names a built one to use instead."""
    override = os.environ.get(OVERRIDE)
    if override:
        if not Path(override).is_file():
            raise CannotTell(f"{OVERRIDE} names {override}, which is not a file; unset it or name a built library")
        return Path(override)
    return build()


def _declare(library: ctypes.CDLL, signatures: dict[str, list[Any]]) -> None:
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = c_int32


@functools.cache
def _open(place: Path) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(place))
        library.native_last_error.restype = c_char_p
        library.native_flush_bytes_cpu.restype = c_int64
        _declare(library, SIGNATURES)
        if library.native_has_cuda():
            _declare(library, CUDA_SIGNATURES)
    except (OSError, AttributeError) as error:
        raise CannotTell(
            f"the native library {place} does not load ({error}); delete its folder and run again"
        ) from None
    return library


def load(place: Path | None = None) -> ctypes.CDLL:
    """The library, loaded once per process from `place` or from path()."""
    return _open(Path(place)) if place else _open(_default())


@functools.cache
def _default() -> Path:
    return path()


def has_cuda() -> bool:
    """Whether the library in use was built with its CUDA half."""
    return bool(load().native_has_cuda())


def call(name: str, *arguments: Any) -> None:
    """Calls `name` in the library; raises NativeError with the library's own sentence when its status is not 0, and
    CannotTell when a CUDA function is asked of the CPU-only library."""
    library = load()
    if name in CUDA_SIGNATURES and not library.native_has_cuda():
        raise CannotTell(
            "the native core was built without CUDA, as no GPU or no nvcc was found; it serves no CUDA device"
        )
    status = getattr(library, name)(*arguments)
    if status != 0:
        raise NativeError(status, library.native_last_error().decode(errors="replace"))


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m utils.native.library", description="Build the native core.")
    parser.add_argument("--arch", help="compute capabilities to build for, separated by spaces or ;, e.g. 9.0")
    arguments = parser.parse_args(argv)
    chosen = arguments.arch.replace(";", " ").split() if arguments.arch is not None else None
    print(path() if chosen is None else build(chosen))
    return YES


if __name__ == "__main__":
    run(main)
