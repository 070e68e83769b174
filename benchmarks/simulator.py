"""Speed of the simulator: simulated threads per second, elementwise and with shuffles and barriers.

    python benchmarks/simulator.py [--json FILE]

Two figures each, the best of several runs: by the clock, over all cores, and by the processor time spent, for one core
that nobody else uses. The target is for the clock, on two cores.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from utils.sim.build import build_sources

RUNS = 15
SOURCE = r"""
#include <cuda_runtime.h>
__global__ void axpy(const float* x, float* y, int n, float a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
// Ten shuffles and two barriers a thread.
__global__ void block_sums(const float* x, float* y, int n) {
    __shared__ float parts[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float v = i < n ? x[i] : 0.f;
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    v = lane < blockDim.x / 32 ? parts[lane] : 0.f;
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = v;
}
extern "C" void run_axpy(float* x, float* y, int n) { axpy<<<(n + 255) / 256, 256>>>(x, y, n, 2.f); }
extern "C" void run_block_sums(float* x, float* y, int n) { block_sums<<<(n + 255) / 256, 256>>>(x, y, n); }
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "speed.cu"
        source.write_text(SOURCE)
        library = ctypes.CDLL(str(build_sources([source], Path(folder) / "speed.so")))
        for name, n, target in (("axpy", 1 << 24, 100e6), ("block_sums", 1 << 20, 4e6)):
            x = (ctypes.c_float * n)()
            y = (ctypes.c_float * n)()
            run = getattr(library, f"run_{name}")
            run(x, y, n)
            clock, spent = [], []
            for _ in range(RUNS):
                before = time.process_time()
                start = time.perf_counter()
                run(x, y, n)
                clock.append(time.perf_counter() - start)
                spent.append(time.process_time() - before)
            rates[name] = {
                "threads_per_second": n / min(clock),
                "threads_per_core_second": n / min(spent),
                "target": target,
            }
            print(
                f"{name:12s} {n / min(clock) / 1e6:8.1f} M threads/s (target {target / 1e6:g}), "
                f"{n / min(spent) / 1e6:.1f} M per second of one core"
            )
    if options.json:
        options.json.write_text(json.dumps(rates, indent=2) + "\n")


if __name__ == "__main__":
    main()
