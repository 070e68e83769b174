"""How long `bash utils/compile.sh` takes: from nothing, and after one file was touched.

    python benchmarks/build_times.py [--workspace DIR] [--repeats 3] [--json FILE]

"Cold" starts without a build folder and without a precompiled header (a private, empty cache folder). The cold build
starts the precompiled header in the background. "Binding at once" touches a binding as soon as the last cold build has
ended, when that header may still be in the making; the cases after it wait until it is there. Every .cu, every .cpp and
every binding takes its turn at being touched.

Each figure is of the whole command as a user runs it, interpreter start included: wall-clock (median, least and most of
the repeats), and the processor time of all its processes (least), which a busy machine disturbs less; the maker of the
precompiled header is not in it. `--torch-load` also times torch.utils.cpp_extension.load on the same sources.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Sample:
    """One run of a command: seconds on the clock, and of all processors in its processes that have ended."""

    wall: float
    cpu: float


def timed(command: list[str], environment: dict[str, str]) -> Sample:
    """One run of `command`; raises CalledProcessError with its output when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Sample(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def run_build(workspace: Path, environment: dict[str, str]) -> Sample:
    """One compile.sh."""
    return timed(["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(workspace)], environment)


def make_cold(workspace: Path, environment: dict[str, str]) -> None:
    """Removes what builds wrote, and the cache."""
    wait_for_header(environment)
    shutil.rmtree(workspace / "build", ignore_errors=True)
    shutil.rmtree(environment["XDG_CACHE_HOME"], ignore_errors=True)
    for module in workspace.glob("cuda_extension*.so"):
        module.unlink()


def touch(file: Path) -> None:
    """Appends a comment, for contents decide what is compiled again."""
    with file.open("a", encoding="utf-8") as source:
        source.write(f"// touched {time.time_ns()}\n")


def wait_for_header(environment: dict[str, str]) -> None:
    """Returns when no precompiled header is being made any more: its maker holds the lock."""
    time.sleep(1)  # the maker may just have been started
    for lock in (Path(environment["XDG_CACHE_HOME"]) / "kernel-workbench" / "pch").glob("*/lock"):
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def torch_load(workspace: Path, environment: dict[str, str]) -> Sample:
    """torch's own JIT loader on the same sources, import of torch included."""
    code = (
        "import glob, os, sys, tempfile\n"
        "from torch.utils.cpp_extension import load\n"
        "root, ws = sys.argv[1:]\n"
        "sources = [root + '/binding.cpp', *glob.glob(ws + '/kernels/*.c*')]\n"
        "load('cuda_extension', sources, extra_include_paths=[root, root + '/kernels'], extra_cflags=['-O3'],\n"
        "     extra_cuda_cflags=['-O3'], extra_ldflags=['-lcublas', '-lcublasLt'],\n"
        "     build_directory=tempfile.mkdtemp(), is_python_module=False)\n"
    )
    command = [sys.executable, "-c", code, str(ROOT), str(workspace)]
    return timed(command, {**environment, "TORCH_CUDA_ARCH_LIST": "9.0a"})


def main() -> None:
    """Prints a table; writes JSON when asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--workspace", type=Path, default=ROOT, help="measured on a copy (default: the repository root)"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--torch-load", action="store_true", help="also time torch.utils.cpp_extension.load")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "workspace"
        workspace.mkdir()
        shutil.copytree(arguments.workspace / "kernels", workspace / "kernels")
        for file in ("model.py", "model_new.py"):
            shutil.copy(arguments.workspace / file, workspace)
        environment = {**os.environ, "XDG_CACHE_HOME": str(Path(folder) / "cache")}

        def measure(prepare: Callable[[], None]) -> list[Sample]:
            samples = []
            for _ in range(arguments.repeats):
                prepare()
                samples.append(run_build(workspace, environment))
            return samples

        files = sorted((workspace / "kernels").glob("*.c*"))
        cases = {"cold": measure(lambda: make_cold(workspace, environment))}
        for binding in [file for file in files if file.stem.endswith("_binding")][:1]:
            touch(binding)
            cases["binding at once"] = [run_build(workspace, environment)]
        wait_for_header(environment)
        cases["nothing changed"] = measure(lambda: None)
        for file in files:
            cases[f"{file.name} touched"] = measure(partial(touch, file))
        if arguments.torch_load:
            cases["torch load, cold"] = [torch_load(workspace, environment)]

    print(f"{'build':<34}{'median s':>10}{'min':>8}{'max':>8}{'cpu s':>8}   ({os.cpu_count()} cores)")
    for name, samples in cases.items():
        walls = [sample.wall for sample in samples]
        least = min(sample.cpu for sample in samples)
        print(f"{name:<34}{statistics.median(walls):>10.2f}{min(walls):>8.2f}{max(walls):>8.2f}{least:>8.2f}")
    if arguments.json:
        record = {
            "cores": os.cpu_count(),
            "seconds": {name: [sample.wall for sample in samples] for name, samples in cases.items()},
            "cpu_seconds": {name: [sample.cpu for sample in samples] for name, samples in cases.items()},
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
