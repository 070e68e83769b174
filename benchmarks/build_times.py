"""How long `bash utils/compile.sh` takes: from nothing, and after one file was touched.

    python benchmarks/build_times.py [--workspace DIR] [--repeats 3] [--json FILE]

"Cold" starts without a build folder and without a precompiled header (a private, empty cache folder). The cold build
starts the precompiled header in the background; the cases after it wait until that is there, as a person who reads the
first result does. Each figure is the wall-clock of the whole command as a user runs it, interpreter start included; the
median of the repeats is shown. Every .cu and every binding takes its turn at being touched.
For comparison, `--torch-load` also times torch.utils.cpp_extension.load on the same sources, from nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run_build(workspace: Path, environment: dict[str, str]) -> float:
    """Seconds of one compile.sh; raises CalledProcessError with its output when the build fails."""
    start = time.perf_counter()
    subprocess.run(
        ["bash", str(ROOT / "utils" / "compile.sh"), "--workspace", str(workspace)],
        env=environment, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return time.perf_counter() - start


def make_cold(workspace: Path, environment: dict[str, str]) -> None:
    """Removes what builds wrote, and the cache."""
    shutil.rmtree(workspace / "build", ignore_errors=True)
    shutil.rmtree(environment["XDG_CACHE_HOME"], ignore_errors=True)
    for module in workspace.glob("cuda_extension*.so"):
        module.unlink()


def touch(file: Path) -> None:
    """Appends a comment, for contents decide what is compiled again."""
    with file.open("a", encoding="utf-8") as source:
        source.write(f"// touched {time.time_ns()}\n")


def wait_for_header(environment: dict[str, str], seconds: float = 90) -> None:
    """Returns when no precompiled header is being made any more."""
    deadline = time.monotonic() + seconds
    headers = Path(environment["XDG_CACHE_HOME"]) / "kernel-workbench" / "pch"
    while time.monotonic() < deadline:
        folders = [folder for folder in headers.glob("*") if folder.is_dir()]
        if folders and all(list(folder.glob("*.gch")) for folder in folders):
            return
        time.sleep(0.2)


def torch_load(workspace: Path, environment: dict[str, str]) -> float:
    """Seconds that torch's own JIT loader takes for the same sources, import of torch included."""
    code = (
        "import glob, os, sys, tempfile\n"
        "from torch.utils.cpp_extension import load\n"
        "root, ws = sys.argv[1:]\n"
        "sources = [root + '/binding.cpp', *glob.glob(ws + '/kernels/*.c*')]\n"
        "load('cuda_extension', sources, extra_include_paths=[root, root + '/kernels'], extra_cflags=['-O3'],\n"
        "     extra_cuda_cflags=['-O3'], extra_ldflags=['-lcublas', '-lcublasLt'],\n"
        "     build_directory=tempfile.mkdtemp(), is_python_module=False)\n"
    )
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, str(ROOT), str(workspace)],
        env={**environment, "TORCH_CUDA_ARCH_LIST": "9.0a"},
        check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    return time.perf_counter() - start


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

        def measure(prepare: Callable[[], None]) -> list[float]:
            samples = []
            for _ in range(arguments.repeats):
                prepare()
                samples.append(run_build(workspace, environment))
            return samples

        seconds = {"cold": measure(lambda: make_cold(workspace, environment))}
        wait_for_header(environment)
        seconds["nothing changed"] = measure(lambda: None)
        for file in sorted((workspace / "kernels").glob("*.c*")):
            seconds[f"{file.name} touched"] = measure(partial(touch, file))
        if arguments.torch_load:
            seconds["torch load, cold"] = [torch_load(workspace, environment)]

    print(f"{'build':<34}{'median s':>10}{'min':>8}{'max':>8}   ({os.cpu_count()} cores)")
    for name, samples in seconds.items():
        print(f"{name:<34}{statistics.median(samples):>10.2f}{min(samples):>8.2f}{max(samples):>8.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps({"cores": os.cpu_count(), "seconds": seconds}, indent=2) + "\n")


if __name__ == "__main__":
    main()
