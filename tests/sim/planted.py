"""Runs the planted bugs of one file on its library and prints what was found, as JSON: one process per run.

    python planted.py LIBRARY FILE [NAME ...]

FILE: planted or planted_async, in kernels/.
"""

from __future__ import annotations

import ctypes
import json
import re
import sys
from pathlib import Path

FILES = ("planted", "planted_async")
N = 256


def planted(file: str) -> dict[str, tuple[str, int]]:
    """name -> (kind, line) of every planted bug: the BUG comment, and the kernel or launcher above it."""
    found, name = {}, ""
    source = Path(__file__).with_name("kernels") / f"{file}.cu"
    for number, line in enumerate(source.read_text().splitlines(), 1):
        match = re.match(r"__global__ void (?:__cluster_dims__\([^)]*\) )?(\w+)\(|extern \"C\" int (\w+)_run\(", line)
        if match:
            name = match[1] or match[2]
        bug = re.search(r"// BUG (\w+)", line)
        if bug:
            found[name] = (bug[1], number)
    return found


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.kernel_workbench_sim_reports.restype = ctypes.c_char_p
    library.cudaMalloc_for_tests = library.sim_test_allocate
    library.sim_test_allocate.restype = ctypes.c_void_p
    library.sim_test_allocate.argtypes = [ctypes.c_size_t]
    names = sys.argv[3:] or [each for name in planted(sys.argv[2]) for each in (name, f"{name}_clean")]
    results = {}
    for name in names:
        a = library.sim_test_allocate(4 * N)
        b = library.sim_test_allocate(4 * N)
        values = (ctypes.c_float * N)(*[(i * 7 % 31) - 11.5 for i in range(N)])
        ctypes.memmove(a, values, 4 * N)
        ctypes.memset(b, 0, 4 * N)
        run = getattr(library, f"{name}_run")
        run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        thrown = library.sim_test_call(ctypes.cast(run, ctypes.c_void_p), ctypes.c_void_p(a), ctypes.c_void_p(b), N)
        reports = json.loads(library.kernel_workbench_sim_reports(1))["reports"]
        results[name] = {"thrown": thrown, "reports": reports}
    print(json.dumps(results))


if __name__ == "__main__":
    main()
