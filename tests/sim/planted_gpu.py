"""Runs one planted bug of kernels/planted.cu, built by nvcc, on a GPU: for compute-sanitizer to watch.

python planted_gpu.py LIBRARY NAME
"""

from __future__ import annotations

import ctypes
import sys

N = 256


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    run = library.sim_test_run
    run.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_float), ctypes.c_int]
    values = (ctypes.c_float * N)(*[(i * 7 % 31) - 11.5 for i in range(N)])
    error = run(ctypes.cast(getattr(library, f"{sys.argv[2]}_run"), ctypes.c_void_p), values, N)
    print(f"CUDA error {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
