// Softmax statistics that can be merged: the maximum of the logits seen so far and the sum of exp(logit - maximum).
//
// With M = max(m1, m2), two partial states combine to {M, s1 e^(m1-M) + s2 e^(m2-M)} in any order (Milakov and
// Gimelshein, "Online normalizer calculation for softmax", 2018), so one read of the data suffices and nothing
// overflows.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace kernels {

constexpr float kLog2E = 1.4426950408889634f;

// 2^x to 2 units in the last place, results below 2^-126 flushed to zero: one instruction, where exp2f takes four to
// keep denormal results.
__device__ __forceinline__ float exp2_flushed(float x) {
#if defined(__CUDA_ARCH__)
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(result) : "f"(x));
    return result;
#else
    return exp2f(x);
#endif
}

struct SoftmaxState {
    float max = -INFINITY;
    float sum = 0.f;
};

// exp(x - max), where an empty state (max = -inf) counts as 0 rather than exp(-inf + inf) = NaN.
__device__ __forceinline__ float exp_below(float x, float max) {
    const float shift = max == -INFINITY ? 0.f : max;
    return exp2f((x - shift) * kLog2E);
}

__device__ __forceinline__ SoftmaxState merge(SoftmaxState a, SoftmaxState b) {
    const float max = fmaxf(a.max, b.max);
    return {max, a.sum * exp_below(a.max, max) + b.sum * exp_below(b.max, max)};
}

// The merged state of the warp's 32 lanes, in every lane; the whole warp must call it.
__device__ __forceinline__ SoftmaxState warp_merge(SoftmaxState state) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const SoftmaxState other = {__shfl_xor_sync(0xffffffffu, state.max, offset),
                                    __shfl_xor_sync(0xffffffffu, state.sum, offset)};
        state = merge(state, other);
    }
    return state;
}

}  // namespace kernels
