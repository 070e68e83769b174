"""The simulator's conformance suite and planted bugs on a GPU: the same sources, built by nvcc.

    python benchmarks/conformance_gpu.py [--only PART ...] [--json FILE] [--jobs N] [--seconds S]

1. Every check of tests/sim/kernels/conformance.cu must give the answer that the simulator is held to.
2. Every planted bug of tests/sim/kernels/planted.cu and planted_async.cu under compute-sanitizer's four tools, beside
   what the simulator says of it, and the clean twins, of which nothing may be said. A planted bug has a process of its
   own for each tool: after an error a context is of no further use. The clean twins of a file share one for each tool.

Exit codes: 0 all answers as defined and the clean twins clean, 1 not so, 2 a part did not run. What compute-sanitizer
does not find of a planted bug is told, and is no failure.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests/sim"))

import planted  # noqa: E402
from conformance_answers import ANSWERS  # noqa: E402

from utils.build.toolchain import find_nvcc  # noqa: E402
from utils.present.outcome import run  # noqa: E402
from utils.sim import device  # noqa: E402

HERE = ROOT / "tests/sim"
PARTS = ("conformance", *planted.FILES)
SUITE_SECONDS = 60.0
# A kernel that waits for lanes that never come ends by this. A tool's start is about three seconds, more with others.
RUN_SECONDS = 30.0
FLAGS = ["-std=c++17", "-arch=sm_90a", "-O3", "-lineinfo", "--expt-extended-lambda", "--expt-relaxed-constexpr"]


def compile_with_nvcc(name: str, folder: Path) -> Path:
    target = folder / f"{name}.so"
    source = HERE / "kernels" / f"{name}.cu"
    command = [str(find_nvcc(None).path), *FLAGS, "-Xcompiler", "-fPIC", "-shared", "-o", str(target), str(source)]
    subprocess.run(command, check=True, timeout=300)
    return target


def conformance(library: Path) -> dict[str, str]:
    """name -> "" or what is wrong. A check that leaves an error, or does not end, ends its process; another goes on."""
    results: dict[str, str] = {}
    end = time.monotonic() + SUITE_SECONDS
    while names := [name for name in ANSWERS if name not in results]:
        command = [sys.executable, str(HERE / "conformance.py"), str(library), *names]
        before = len(results)
        with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryFile("w+") as errors:
            try:
                limit = min(15.0, max(end - time.monotonic(), 0.1))
                subprocess.run(command, stdout=said, stderr=errors, timeout=limit)
                stopped = "the process ended"
            except subprocess.TimeoutExpired:
                stopped = "did not end in time"
            said.seek(0)
            for line in said.read().splitlines():
                results.update(json.loads(line))
            errors.seek(0)
            last = (errors.read().strip().splitlines() or [""])[-1]
        stuck = [name for name in names if name not in results]
        if stuck and stopped != "the process ended":
            results[stuck[0]] = stopped
        elif len(results) == before:
            results.update(dict.fromkeys(stuck, f"{stopped}: {last}"))
        if time.monotonic() > end:
            results.update({name: "not run: out of time" for name in ANSWERS if name not in results})
    return results


def sanitized(library: Path, names: list[str], tool: str, end: float) -> dict[str, Any]:
    """What one tool said of the kernels `names`, run in one process."""
    left = end - time.monotonic()
    if left < 1:
        return {"code": None, "findings": [], "failure": "not run: out of time", "seconds": 0.0}
    start = time.monotonic()
    limit = min(RUN_SECONDS * (1 if len(names) == 1 else 2), left)
    command = [sys.executable, str(HERE / "planted_gpu.py"), str(library), *names]
    code, text = device.run_tool(tool, command, HERE, limit)
    failure = device.failure(code, text)
    if len(names) > 1 and not failure:
        ended = re.findall(r"^(\w+): CUDA error 0$", text, re.M)
        failure = ", ".join(f"{name} did not run to its end" for name in names if name not in ended)
    return {
        "code": code,
        "findings": [each.record() for each in device.parse(tool, text)],
        "failure": failure,
        "seconds": round(time.monotonic() - start, 1),
        "said": text[:4000],
    }


def watched(library: Path, file: str, jobs: int, end: float) -> dict[str, Any]:
    """compute-sanitizer over one file: {"clean": tool -> result, "planted": bug -> tool -> result}."""
    names = list(planted.planted(file))
    clean = [f"{name}_clean" for name in names]
    record: dict[str, Any] = {"clean": {}, "planted": {}}
    first = record["clean"][device.TOOLS[0]] = sanitized(library, clean, device.TOOLS[0], end)
    if first["failure"]:
        # A machine where the tool itself does not run: saying so once is enough.
        print(f"compute-sanitizer: {first['failure']}\n{first.get('said', '')}")
        return record
    tasks = [("clean", tool, clean) for tool in device.TOOLS[1:]]
    tasks += [("planted", tool, [name]) for name in names for tool in device.TOOLS]
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda task: sanitized(library, task[2], task[1], end), tasks))
    for (part, tool, which), result in zip(tasks, results, strict=True):
        (record["clean"] if part == "clean" else record["planted"].setdefault(which[0], {}))[tool] = result
    return record


def show(file: str, record: dict[str, Any]) -> None:
    print(f"{file + '.cu':26s} {'simulator':22s} {'line':>5s}  compute-sanitizer")
    for name, (kind, line) in planted.planted(file).items():
        said, failed = [], []
        for tool, result in record["planted"].get(name, {}).items():
            said += [f"{tool}: {each['kind']}:{each['line']}" for each in result["findings"]]
            failed += [f"{tool}: {result['failure']}"] if result["failure"] else []
        print(f"{name:26s} {kind:22s} {line:5d}  {'; '.join(dict.fromkeys([*said, *failed])) or 'nothing'}")
    for tool, result in record["clean"].items():
        print(f"clean twins, {tool}: {len(result['findings'])} findings {result['failure']}")
        for each in result["findings"]:
            print(f"  {each['kernel']}:{each['line']}: {each['kind']}: {each['message']}")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--jobs", type=int, default=12, help="processes at a time under compute-sanitizer")
    parser.add_argument("--seconds", type=float, default=120, help="for all of compute-sanitizer; the rest is not run")
    options = parser.parse_args(argv)
    record: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with ThreadPoolExecutor(len(PARTS)) as pool:
            built = dict(pool.map(lambda name: (name, compile_with_nvcc(name, folder)), options.only))
        if "conformance" in built:
            record["conformance"] = conformance(built.pop("conformance"))
            wrong = {name: text for name, text in record["conformance"].items() if text}
            print(f"conformance: {len(record['conformance']) - len(wrong)} of {len(record['conformance'])} as defined")
            for name, text in wrong.items():
                print(f"  {name}: {text}", flush=True)
        begun = time.monotonic()
        for file, library in built.items():
            record[file] = watched(library, file, options.jobs, begun + options.seconds)
            show(file, record[file])
        record["seconds"] = round(time.monotonic() - begun, 1)
        print(f"compute-sanitizer: {record['seconds']} s")
    if options.json:
        options.json.write_text(json.dumps(record, indent=2) + "\n")
    clean = [result for file in built for result in record[file]["clean"].values()]
    if wrong or any(result["findings"] for result in clean):
        return 1
    bugs = [result for file in built for tools in record[file]["planted"].values() for result in tools.values()]
    # Kernels that wait for each other for ever are among the planted bugs: there a time-out is an answer.
    failed = [r for r in [*clean, *bugs] if r["failure"] and r["code"] != 124]
    return 2 if failed else 0


if __name__ == "__main__":
    run(main)
