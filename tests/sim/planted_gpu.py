"""Runs planted bugs or clean twins of kernels/planted*.cu, built by nvcc, on a GPU: for compute-sanitizer to watch.

    python planted_gpu.py LIBRARY NAME...

Several names in one process are for clean twins: after an error the context of a process is of no further use.
Give each planted bug a process and a time limit: threads that wait for an mbarrier in vain wait for ever on a device.
"""

from __future__ import annotations

import ctypes
import sys

N = 256


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    run = library.sim_test_run
    run.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_float), ctypes.c_int]
    values = (ctypes.c_float * N)(*[(i * 7 % 31) - 11.5 for i in range(N)])
    for name in sys.argv[2:]:
        error = run(ctypes.cast(getattr(library, f"{name}_run"), ctypes.c_void_p), values, N)
        print(f"{name}: CUDA error {error}", flush=True)


if __name__ == "__main__":
    main()
