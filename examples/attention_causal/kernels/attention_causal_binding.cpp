// Python binding of attention_causal.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void attention_causal_launcher(float* out, const float* query, const float* key, const float* value,
                                          int batches, int heads, int length, int config, cudaStream_t stream);

torch::Tensor attention_causal(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value,
                               int64_t config) {
    constexpr const char* op = "attention_causal";
    constexpr int64_t kHeadDim = 64;
    kernels::check_tensor(query, op, "query", torch::kFloat32);  // (batch, heads, length, 64)
    TORCH_CHECK(query.dim() == 4 && query.size(3) == kHeadDim, op, ": query must be (batch, heads, length, ", kHeadDim,
                "), but has shape ", query.sizes());
    const int64_t batch = query.size(0);
    const int64_t heads = query.size(1);
    const int64_t length = query.size(2);
    kernels::check_parameter(key, op, "key", torch::kFloat32, query, "query", {batch, heads, length, kHeadDim},
                             "(batch, heads, length, 64)");
    kernels::check_parameter(value, op, "value", torch::kFloat32, query, "query", {batch, heads, length, kHeadDim},
                             "(batch, heads, length, 64)");
    kernels::check_aligned(query, op, "query", 16);
    kernels::check_aligned(key, op, "key", 16);
    kernels::check_aligned(value, op, "value", 16);
    TORCH_CHECK(batch * heads <= 65535, op, ": batch * heads must be at most 65535, but is ", batch * heads);
    TORCH_CHECK(length <= (int64_t{1} << 24), op, ": length must be at most 2^24, but is ", length);
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(query.device());
    torch::Tensor out = torch::empty_like(query);
    if (out.numel() == 0) return out;
    attention_causal_launcher(out.data_ptr<float>(), query.data_ptr<float>(), key.data_ptr<float>(),
                              value.data_ptr<float>(), static_cast<int>(batch), static_cast<int>(heads),
                              static_cast<int>(length), checked_config, c10::cuda::getCurrentCUDAStream().stream());
    return out;
}

void register_attention_causal(pybind11::module& m) {
    m.def("attention_causal", &attention_causal, pybind11::arg("query"), pybind11::arg("key"), pybind11::arg("value"),
          pybind11::arg("config") = 0,
          R"doc(softmax(Q K^T / 8, causal) V.

query, key, value: (batch, heads, length, 64) float32, contiguous, CUDA. Returns a new tensor of their shape.

config: precision of the two products, and queries per warp
    0  TF32, 32 queries
    1  bf16, 32 queries
    2  TF32, 16 queries
    3  bf16, 16 queries

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(attention_causal, register_attention_causal);
