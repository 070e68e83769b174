// What cuDNN's legacy calls and its backend share on the simulator: tensors over memory, and convolutions by ATen.
#pragma once

#include "tensors.h"

#include <cudnn.h>
#include <torch/types.h>

#include <string>
#include <vector>

namespace sim::libs {

inline std::string last_message;

inline bool dtype_of(cudnnDataType_t type, at::ScalarType* out) {
    switch (type) {
        case CUDNN_DATA_FLOAT:
            *out = at::kFloat;
            return true;
        case CUDNN_DATA_DOUBLE:
            *out = at::kDouble;
            return true;
        case CUDNN_DATA_HALF:
            *out = at::kHalf;
            return true;
        case CUDNN_DATA_BFLOAT16:
            *out = at::kBFloat16;
            return true;
        case CUDNN_DATA_INT32:
            *out = at::kInt;
            return true;
        case CUDNN_DATA_BOOLEAN:
            *out = at::kBool;
            return true;
        default:
            return false;
    }
}

template <class F>
cudnnStatus_t guarded(F work) {
    try {
        at::NoGradGuard no_grad;
        return work();
    } catch (const std::exception& error) {
        last_message = error.what();
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
}

struct Tensor {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<int64_t> sizes, strides;
    at::Tensor over(const void* data) const {
        at::ScalarType dtype{};
        TORCH_CHECK(dtype_of(type, &dtype), "the simulator's cuDNN has no data type ", static_cast<int>(type));
        return view(data, sizes, strides, dtype);
    }
    void packed(bool channels_last) {
        strides.assign(sizes.size(), 1);
        int64_t stride = 1;
        if (channels_last) {
            strides[1] = stride;
            stride *= sizes[1];
            for (size_t i = sizes.size() - 1; i >= 2; --i) strides[i] = stride, stride *= sizes[i];
            strides[0] = stride;
        } else {
            for (size_t i = sizes.size(); i-- > 0;) strides[i] = stride, stride *= sizes[i];
        }
    }
};

struct Convolution {
    std::vector<int64_t> padding, stride, dilation;
    int64_t groups = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

inline at::Tensor wide(const at::Tensor& x, bool allow_tf32) {
    const at::Tensor w = x.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return allow_tf32 && x.scalar_type() == at::kFloat ? tf32(w) : w;
}

inline at::Tensor forward(const at::Tensor& x, at::Tensor w, const Convolution& c, bool allow_tf32) {
    if (c.mode == CUDNN_CONVOLUTION) {
        std::vector<int64_t> dims;
        for (int64_t i = 2; i < w.dim(); ++i) dims.push_back(i);
        w = w.flip(dims);
    }
    return at::convolution(wide(x, allow_tf32), wide(w, allow_tf32), {}, c.stride, c.padding, c.dilation, false,
                           std::vector<int64_t>(c.stride.size(), 0), c.groups);
}

inline at::Tensor backward_data(const at::Tensor& dy, const at::Tensor& w, const Convolution& c,
                                at::IntArrayRef dx_sizes, bool allow_tf32) {
    std::vector<int64_t> extra;
    for (size_t i = 0; i < c.stride.size(); ++i) {
        const int64_t smallest =
            (dy.size(i + 2) - 1) * c.stride[i] - 2 * c.padding[i] + c.dilation[i] * (w.size(i + 2) - 1) + 1;
        extra.push_back(dx_sizes[i + 2] - smallest);
    }
    return at::convolution(wide(dy, allow_tf32), wide(w, allow_tf32), {}, c.stride, c.padding, c.dilation, true, extra,
                           c.groups);
}

}  // namespace sim::libs
