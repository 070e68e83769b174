// The maximum as PyTorch defines it: NaN if either is NaN, where fmaxf returns the other operand.
#pragma once

#include <cuda_runtime.h>

namespace kernels {

__device__ __forceinline__ float max_nan(float a, float b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float result;  // one instruction, which C++ cannot name
    asm("max.NaN.f32 %0, %1, %2;\n" : "=f"(result) : "f"(a), "f"(b));
    return result;
#else
    return (a > b || a != a) ? a : b;
#endif
}

}  // namespace kernels
