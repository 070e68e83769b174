"""The simulator's conformance suite and planted bugs on a GPU: the same sources, built by nvcc.

    python benchmarks/conformance_gpu.py [--json FILE]

1. Every check of tests/sim/kernels/conformance.cu must give the answer that the simulator is held to.
2. Every planted bug of tests/sim/kernels/planted.cu, and its clean twin, under compute-sanitizer's four tools, beside
   what the simulator says of it. One process per kernel and tool: after an error a context is of no further use.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/sim"))

import planted  # noqa: E402

from utils.build.toolchain import find_nvcc  # noqa: E402
from utils.sim import device  # noqa: E402

HERE = ROOT / "tests/sim"


def compile_with_nvcc(name: str, folder: Path) -> Path:
    target = folder / f"{name}.so"
    command = [
        str(find_nvcc(None).path),
        "-std=c++17",
        "-arch=sm_90a",
        "-O3",
        "-lineinfo",
        "--expt-extended-lambda",
        "--expt-relaxed-constexpr",
    ]
    command += [
        "-Xcompiler",
        "-fPIC",
        "-shared",
        "-o",
        str(target),
        str(HERE / "kernels" / f"{name}.cu"),
    ]
    subprocess.run(command, check=True)
    return target


def conformance(library: Path) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(HERE / "conformance.py"), str(library)], capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        return {
            "(all)": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
        }
    return json.loads(done.stdout)


def sanitized(library: Path, name: str, tool: str) -> dict[str, Any]:
    code, text = device.run_tool(tool, [sys.executable, str(HERE / "planted_gpu.py"), str(library), name], HERE, 40)
    return {
        "code": code,
        "findings": [each.record() for each in device.parse(tool, text)],
        "said": "" if "=========" in text else text[-500:],
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=6)
    options = parser.parse_args()
    record: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with ThreadPoolExecutor(2) as pool:
            suite, bugs = pool.map(lambda name: compile_with_nvcc(name, folder), ["conformance", "planted"])
        record["conformance"] = conformance(suite)
        wrong = {name: text for name, text in record["conformance"].items() if text}
        print(f"conformance: {len(record['conformance']) - len(wrong)} of {len(record['conformance'])} as defined")
        for name, text in wrong.items():
            print(f"  {name}: {text}")
        names = [each for name in planted.planted() for each in (name, f"{name}_clean")]
        tasks = [(name, tool) for name in names for tool in device.TOOLS]
        with ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda task: sanitized(bugs, *task), tasks))
    record["planted"] = {}
    print(f"{'planted bug':22s} {'simulator':22s} {'line':>5s}  compute-sanitizer")
    for (name, tool), result in zip(tasks, results, strict=True):
        record["planted"].setdefault(name, {})[tool] = result
    for name, (kind, line) in planted.planted().items():
        said = []
        for tool in device.TOOLS:
            for each in record["planted"][name][tool]["findings"]:
                said.append(f"{tool}: {each['kind']}:{each['line']}")
        noise = [tool for tool in device.TOOLS if record["planted"][f"{name}_clean"][tool]["findings"]]
        clean = f"   (clean twin: {', '.join(noise)})" if noise else ""
        print(f"{name:22s} {kind:22s} {line:5d}  {'; '.join(dict.fromkeys(said)) or 'nothing'}{clean}")
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
