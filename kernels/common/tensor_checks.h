// What a binding asks of its tensors before it hands raw pointers to a kernel. Each check answers with a sentence that
// says which argument of which operator is wrong, and how.
//
// Only bindings include this (it needs torch's headers); the kernels themselves stay free of torch. The tensor alone
// (ATen/core/Tensor.h) is much less to parse than torch/types.h with every operator. Nor is <ATen/ops/empty.h> here: it
// brings ATen's global state along, a third more time for a binding, where the operator itself is one declaration.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_ops.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <initializer_list>
#include <limits>

namespace kernels {

// Defined, on a GPU, of this dtype, dense in row-major order.
inline void check_tensor(const at::Tensor& tensor, const char* op, const char* name, at::ScalarType dtype) {
    TORCH_CHECK(tensor.defined(), op, ": ", name, " is None; a tensor is needed");
    TORCH_CHECK(tensor.is_cuda(), op, ": ", name, " must be a CUDA tensor, but is on ", tensor.device());
    TORCH_CHECK(tensor.scalar_type() == dtype, op, ": ", name, " must be ", dtype, ", but is ", tensor.scalar_type());
    TORCH_CHECK(tensor.is_contiguous(), op, ": ", name, " must be contiguous, but has shape ", tensor.sizes(),
                " and strides ", tensor.strides(), "; call .contiguous() first");
}

// On the device of `first`: kernels cannot follow pointers into another GPU's memory.
inline void check_same_device(const at::Tensor& tensor, const char* op, const char* name, const at::Tensor& first,
                              const char* first_name) {
    TORCH_CHECK(tensor.device() == first.device(), op, ": ", name, " is on ", tensor.device(), ", but ", first_name,
                " is on ", first.device());
}

// Exactly this shape, of which `meaning` names the dimensions, for example "(out_features, in_features)".
inline void check_shape(const at::Tensor& tensor, const char* op, const char* name,
                        std::initializer_list<int64_t> shape, const char* meaning) {
    const at::IntArrayRef wanted(shape.begin(), shape.size());
    TORCH_CHECK(tensor.sizes() == wanted, op, ": ", name, " must have shape ", meaning, " = ", wanted, ", but has ",
                tensor.sizes());
}

// A parameter: right dtype and layout, on the device of `first`, exactly this shape.
inline void check_parameter(const at::Tensor& tensor, const char* op, const char* name, at::ScalarType dtype,
                            const at::Tensor& first, const char* first_name, std::initializer_list<int64_t> shape,
                            const char* meaning) {
    check_tensor(tensor, op, name, dtype);
    check_same_device(tensor, op, name, first, first_name);
    check_shape(tensor, op, name, shape, meaning);
}

// Starts on a multiple of `bytes`: slices of a larger tensor may not.
inline void check_aligned(const at::Tensor& tensor, const char* op, const char* name, int bytes) {
    TORCH_CHECK(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % static_cast<uintptr_t>(bytes) == 0, op, ": ", name,
                " must start on a ", bytes, "-byte boundary, but is a view that does not; clone it first");
}

// `config` reaches the launcher as an int.
inline int checked_config(int64_t config, const char* op) {
    TORCH_CHECK(config >= 0 && config <= std::numeric_limits<int>::max(), op, ": config must not be negative, got ",
                config);
    return static_cast<int>(config);
}

// at::empty: an uninitialised, contiguous tensor of this shape, of the dtype and on the device of `options`.
inline at::Tensor empty(at::IntArrayRef shape, const at::TensorOptions& options) {
    return at::_ops::empty_memory_format::call(
        c10::fromIntArrayRefSlow(shape), c10::optTypeMetaToScalarType(options.dtype_opt()), options.layout_opt(),
        options.device_opt(), options.pinned_memory_opt(), options.memory_format_opt());
}

// Scratch memory from torch's caching allocator: cached per device and stream, ordered on the stream, and safe inside
// CUDA graphs, none of which a cudaMalloc of our own would be.
inline at::Tensor allocate_workspace(int64_t bytes, const at::Tensor& like) {
    return empty({bytes}, like.options().dtype(at::kByte));
}

}  // namespace kernels
