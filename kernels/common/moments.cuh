// Mean and variance from parts: count, mean and sum of squared deviations, which merge exactly.
//
// The textbook E[x^2] - E[x]^2 loses every digit when the mean is large against the spread. Deviations from a mean (or
// from any value near the data) do not. Merge: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for
// computing sample variances", 1979.
#pragma once

#include <cuda_runtime.h>

#include "reduce.cuh"

namespace kernels {

struct Moments {
    float count = 0.f;
    float mean = 0.f;
    float deviation = 0.f;  // sum of (x - mean)^2
};

__device__ __forceinline__ Moments merge(Moments a, Moments b) {
    const float count = a.count + b.count;
    const float share = count > 0.f ? __fdividef(b.count, count) : 0.f;
    const float distance = b.mean - a.mean;
    return {count, a.mean + distance * share, a.deviation + b.deviation + distance * distance * a.count * share};
}

// One thread's moments, gathered as sums against a shift taken from the data: cheap, and free of cancellation as long
// as the shift lies within a few deviations of the mean.
struct ShiftedSums {
    float shift = 0.f;
    float sum = 0.f;
    float squares = 0.f;

    __device__ __forceinline__ void add(float x) {
        const float centred = x - shift;
        sum += centred;
        squares = fmaf(centred, centred, squares);
    }
    // As four calls, with two long chains of additions instead of two four times as long.
    __device__ __forceinline__ void add(float4 x) {
        const float4 c = make_float4(x.x - shift, x.y - shift, x.z - shift, x.w - shift);
        sum += (c.x + c.y) + (c.z + c.w);
        squares += fmaf(c.x, c.x, c.y * c.y) + fmaf(c.z, c.z, c.w * c.w);
    }
    __device__ __forceinline__ Moments moments(float count) const {
        if (count == 0.f) return {};
        const float centred_mean = sum / count;
        return {count, shift + centred_mean, fmaxf(squares - sum * centred_mean, 0.f)};
    }
};

// Over the lanes of a warp, in every lane; all 32 must call it.
__device__ __forceinline__ Moments warp_merge(Moments m) {
#pragma unroll
    for (int offset = kWarpSize / 2; offset > 0; offset /= 2) {
        m = merge(m, Moments{__shfl_xor_sync(kFullMask, m.count, offset), __shfl_xor_sync(kFullMask, m.mean, offset),
                             __shfl_xor_sync(kFullMask, m.deviation, offset)});
    }
    return m;
}

// Over each group of Width neighbouring lanes whose parts hold `count` values each: cheaper than merging two by two,
// and as exact. Every lane gets the result; all 32 must call it.
struct EqualMoments {
    float mean;
    float deviation;
};

template <int Width>
__device__ __forceinline__ EqualMoments merge_equal(float mean, float deviation, float count) {
    const float common = warp_reduce<Width>(mean, Sum{}) * (1.f / Width);
    const float distance = mean - common;
    return {common, warp_reduce<Width>(fmaf(distance * distance, count, deviation), Sum{})};
}

// Over a block of Threads threads, in every lane of warp 0 (other warps return something unspecified). `partial` is
// shared memory for Threads / 32 values; a barrier must lie between two calls that share it.
template <int Threads>
__device__ __forceinline__ Moments block_merge(Moments m, Moments* partial) {
    constexpr int kWarps = Threads / kWarpSize;
    m = warp_merge(m);
    if (threadIdx.x % kWarpSize == 0) partial[threadIdx.x / kWarpSize] = m;
    __syncthreads();
    if (threadIdx.x < kWarpSize) m = warp_merge(threadIdx.x < kWarps ? partial[threadIdx.x] : Moments{});
    return m;
}

}  // namespace kernels
