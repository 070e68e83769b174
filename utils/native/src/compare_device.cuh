// What the comparison's kernels share: the block's gate, the examinations, and how a block's tallies become one.
#pragma once

#include "context.h"
#include "gate.h"

constexpr int kThreads = 256;
// Blocks per multiprocessor: three leave each thread the 80 registers it needs without spilling, and with two 16-byte
// loads from each tensor per thread 48 KiB under way, twice what covers the latency of HBM at full rate.
constexpr int kBlocksPerMultiprocessor = 3;

__device__ __forceinline__ void atomic_raise(float* line, float value) {
    atomicMax(reinterpret_cast<int*>(line), __float_as_int(value));  // not negative: bits order as the numbers do
}

__device__ __forceinline__ void atomic_raise(double* line, double value) {
    atomicMax(reinterpret_cast<unsigned long long*>(line),
              static_cast<unsigned long long>(__double_as_longlong(value)));
}

// The gate of a block, in shared memory: every thread's finds raise it for all, so that records are broken some dozens
// of times a block instead of some dozens of times a thread.
template <class F>
struct SharedGate {
    F lines[Gate<F>::kFields];

    __device__ void clear() {
        if (threadIdx.x < Gate<F>::kFields) lines[threadIdx.x] = 0;
        __syncthreads();
    }

    // Unsynchronised on purpose: a line read late lets a pair through to an examination it did not need.
    __device__ Gate<F> read() const {
        const volatile F* now = lines;
        return {now[0], now[1], now[2], now[3], now[4], now[5], now[6]};
    }

    __device__ void raise(const Gate<F>& g) {
        const F values[Gate<F>::kFields] = {g.tolerance,   g.slope,       g.max_abs, g.max_rel,
                                            g.atol_needed, g.rtol_needed, g.peak};
#pragma unroll
        for (int i = 0; i < Gate<F>::kFields; ++i)
            if (values[i] > static_cast<const volatile F*>(lines)[i]) atomic_raise(&lines[i], values[i]);
    }
};

__device__ inline Tally shuffled_down(const Tally& tally, int offset) {
    static_assert(sizeof(Tally) % sizeof(int) == 0, "a tally is moved in words");
    Tally other;
    const int* from = reinterpret_cast<const int*>(&tally);
    int* to = reinterpret_cast<int*>(&other);
    for (int i = 0; i < int(sizeof(Tally) / sizeof(int)); ++i) to[i] = __shfl_down_sync(~0u, from[i], offset);
    return other;
}

// Merges the tallies of a block in a fixed tree, so that sums come out the same every time, and writes the result.
inline __device__ __noinline__ void write_block_tally(Tally& tally, Tally* parts) {
    __shared__ Tally of_warp[kThreads / 32];
    for (int offset = 16; offset > 0; offset /= 2) merge(tally, shuffled_down(tally, offset));
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = tally;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int w = 1; w < kThreads / 32; ++w) merge(tally, of_warp[w]);
    parts[blockIdx.x] = tally;
}

// Launch one comparison on the current device into `parts`, one tally a block.
void launch_packed(const Walk& walk, const Rule& rule, Tally* parts, int blocks, cudaStream_t stream);
void launch_strided(const Walk& walk, const Rule& rule, Tally* parts, int blocks, cudaStream_t stream);
