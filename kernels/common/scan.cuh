// Prefix sums over the lanes of a warp.
#pragma once

#include <cuda_runtime.h>

#include "reduce.cuh"

namespace kernels {

// Lane i gets the sum of lanes 0 .. i (Hillis and Steele, five steps). All 32 lanes must call it.
__device__ __forceinline__ float warp_inclusive_sum(float value) {
    const int lane = threadIdx.x % kWarpSize;
#pragma unroll
    for (int offset = 1; offset < kWarpSize; offset *= 2) {
        const float other = __shfl_up_sync(kFullMask, value, offset);
        if (lane >= offset) value += other;
    }
    return value;
}

}  // namespace kernels
