// Conversions between storage types (float, half, bfloat16) and the float that kernels compute in.
//
// Apart from vector.cuh because the half headers cost two seconds of compile time: only kernels that store half types
// include this.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "vector.cuh"

namespace kernels {

__device__ __forceinline__ float to_float(float value) {
    return value;
}
__device__ __forceinline__ float to_float(__half value) {
    return __half2float(value);
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
    return __bfloat162float(value);
}

// Round to nearest, ties to even.
template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
    return value;
}
template <>
__device__ __forceinline__ __half from_float<__half>(float value) {
    return __float2half_rn(value);
}
template <>
__device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
    return __float2bfloat16_rn(value);
}

template <typename T, int N>
__device__ __forceinline__ Vector<float, N> to_float(const Vector<T, N>& value) {
    Vector<float, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) result.element[i] = to_float(value.element[i]);
    return result;
}

template <typename T, int N>
__device__ __forceinline__ Vector<T, N> from_float(const Vector<float, N>& value) {
    Vector<T, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) result.element[i] = from_float<T>(value.element[i]);
    return result;
}

}  // namespace kernels
