// Reductions over the lanes of a warp and the threads of a block. The order of the operations depends on the shape
// alone, so results repeat bit for bit.
#pragma once

#include <cuda_runtime.h>

namespace kernels {

constexpr int kWarpSize = 32;
constexpr unsigned kFullMask = 0xffffffffu;

struct Sum {
    template <typename T>
    __device__ __forceinline__ T operator()(T a, T b) const {
        return a + b;
    }
};

// NaN wins, as in torch.max: fmaxf alone would drop it.
struct Max {
    __device__ __forceinline__ float operator()(float a, float b) const { return (a > b || a != a) ? a : b; }
};

struct Min {
    __device__ __forceinline__ float operator()(float a, float b) const { return (a < b || a != a) ? a : b; }
};

// Butterfly over each group of Width neighbouring lanes; every lane gets the result. All 32 lanes must call it.
template <int Width = kWarpSize, typename T, typename Operation>
__device__ __forceinline__ T warp_reduce(T value, Operation operation) {
    static_assert(Width > 0 && Width <= kWarpSize && (Width & (Width - 1)) == 0, "Width must be a power of two <= 32");
#pragma unroll
    for (int offset = Width / 2; offset > 0; offset /= 2) {
        value = operation(value, __shfl_xor_sync(kFullMask, value, offset));
    }
    return value;
}

// Over a block of Threads threads (a multiple of 32, up to 1024); every thread gets the result. `partial` is shared
// memory for Threads / 32 values. It may be reused for a next call at once: the leading barrier keeps the calls apart.
template <int Threads, typename T, typename Operation>
__device__ __forceinline__ T block_reduce(T value, Operation operation, T* partial) {
    static_assert(Threads % kWarpSize == 0 && Threads <= 1024, "Threads must be a multiple of 32, at most 1024");
    constexpr int kWarps = Threads / kWarpSize;
    value = warp_reduce(value, operation);
    if (kWarps == 1) return value;
    __syncthreads();  // readers of an earlier call have left `partial`
    if (threadIdx.x % kWarpSize == 0) partial[threadIdx.x / kWarpSize] = value;
    __syncthreads();
    value = partial[0];
#pragma unroll
    for (int warp = 1; warp < kWarps; ++warp) value = operation(value, partial[warp]);
    return value;
}

}  // namespace kernels
