// What the stand-ins share: raw memory as ATen tensors.
#pragma once

#include <ATen/ATen.h>
#include <library_types.h>

namespace sim::libs {

inline bool scalar_type(cudaDataType type, at::ScalarType* out) {
    switch (type) {
        case CUDA_R_64F:
            *out = at::kDouble;
            return true;
        case CUDA_R_32F:
            *out = at::kFloat;
            return true;
        case CUDA_R_16F:
            *out = at::kHalf;
            return true;
        case CUDA_R_16BF:
            *out = at::kBFloat16;
            return true;
        case CUDA_R_8I:
            *out = at::kChar;
            return true;
        case CUDA_R_32I:
            *out = at::kInt;
            return true;
        case CUDA_R_8F_E4M3:
            *out = at::kFloat8_e4m3fn;
            return true;
        case CUDA_R_8F_E5M2:
            *out = at::kFloat8_e5m2;
            return true;
        default:
            return false;
    }
}

inline at::Tensor view(const void* data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
    return at::from_blob(const_cast<void*>(data), sizes, strides, at::TensorOptions().dtype(type));
}

// What a tensor core keeps of a float: 10 bits of the fraction, rounded to nearest.
inline at::Tensor tf32(const at::Tensor& x) {
    at::Tensor bits = x.contiguous().view(at::kInt);
    at::Tensor rounded = bits.add(0x1000).bitwise_and(~0x1fff).view(at::kFloat);
    return at::where(at::isfinite(x), rounded, x);
}

}  // namespace sim::libs
