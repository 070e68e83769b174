// Moments of long segments by many blocks, in a kernel of its own: the plain first half of a two-read normalisation.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "moments.cuh"
#include "vector.cuh"

namespace kernels {

constexpr int kSplitThreads = 512;
constexpr int kMaxSplits = 64;

// Blocks per segment of `length` floats: each gets 64 K floats, up to kMaxSplits of them.
inline int norm_splits(int64_t length) {
    const int64_t splits = (length + 65535) / 65536;
    return static_cast<int>(splits < 1 ? 1 : splits > kMaxSplits ? kMaxSplits : splits);
}

// Grid: segments x splits blocks, the splits of a segment side by side. Width: floats per load, a divisor of length.
// Writes partial[segments][splits].
template <int Width>
__global__ void __launch_bounds__(kSplitThreads)
    partial_moments_kernel(Moments* __restrict__ partial, const float* __restrict__ input, int64_t length, int splits) {
    __shared__ Moments warp_partial[kSplitThreads / kWarpSize];
    const int64_t segment = blockIdx.x / splits;
    const int split = static_cast<int>(blockIdx.x % splits);
    input += segment * length;

    const int64_t vectors = length / Width;
    const int64_t stride = static_cast<int64_t>(splits) * kSplitThreads;
    const int64_t first = static_cast<int64_t>(split) * kSplitThreads + threadIdx.x;
    ShiftedSums sums;
    if (first < vectors) sums.shift = input[first * Width];
    float count = 0.f;
    for (int64_t i = first; i < vectors; i += stride) {
        const Vector<float, Width> value = load<Width>(input + i * Width);
#pragma unroll
        for (int e = 0; e < Width; ++e) sums.add(value.element[e]);
        count += Width;
    }
    const Moments m = block_merge<kSplitThreads>(sums.moments(count), warp_partial);
    if (threadIdx.x == 0) partial[blockIdx.x] = m;
}

// (mean, 1 / sqrt(variance + epsilon)) of a segment from its partial moments; `result` is shared memory. For the whole
// block.
__device__ __forceinline__ float2 merge_partials(const Moments* partial, int splits, float epsilon, float2* result) {
    if (threadIdx.x < kWarpSize) {
        Moments m;
        for (int i = threadIdx.x; i < splits; i += kWarpSize) m = merge(m, partial[i]);
        m = warp_merge(m);
        if (threadIdx.x == 0) *result = make_float2(m.mean, rsqrtf(m.deviation / m.count + epsilon));
    }
    __syncthreads();
    return *result;
}

}  // namespace kernels
