// Python bindings of linear.cpp: one launcher, two operators.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void linear_launcher(float* y, const float* x, const float* weight, const float* bias, const float* residual,
                                int64_t rows, int64_t in_features, int64_t out_features, int config, void* workspace,
                                int64_t workspace_bytes, cudaStream_t stream);

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;  // what cuBLASLt may use for split-K on Hopper

// residual null: GELU; otherwise a tensor of y's shape to add.
at::Tensor linear(const char* op, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const at::Tensor* residual, int64_t config) {
    kernels::check_tensor(x, op, "x", at::kFloat);  // (..., in_features)
    TORCH_CHECK(x.dim() >= 1, op, ": x must have at least one dimension");
    TORCH_CHECK(weight.defined() && weight.dim() == 2, op, ": weight must be (out_features, in_features)");
    const int64_t in_features = x.size(-1);
    const int64_t out_features = weight.size(0);
    TORCH_CHECK(in_features > 0, op, ": x must have at least one feature, but has shape ", x.sizes());
    kernels::check_parameter(weight, op, "weight", at::kFloat, x, "x", {out_features, in_features},
                             "(out_features, in_features)");
    kernels::check_parameter(bias, op, "bias", at::kFloat, x, "x", {out_features}, "(out_features)");
    auto shape = x.sizes().vec();
    shape.back() = out_features;
    if (residual != nullptr) {
        kernels::check_tensor(*residual, op, "residual", at::kFloat);
        kernels::check_same_device(*residual, op, "residual", x, "x");
        TORCH_CHECK(residual->sizes() == at::IntArrayRef(shape), op, ": residual must have the result's shape ",
                    at::IntArrayRef(shape), ", but has ", residual->sizes());
    }
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = kernels::empty(shape, x.options());
    if (y.numel() == 0) return y;
    const at::Tensor workspace = kernels::allocate_workspace(kWorkspaceBytes, x);
    linear_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                    residual != nullptr ? residual->data_ptr<float>() : nullptr, x.numel() / in_features, in_features,
                    out_features, checked_config, workspace.data_ptr(), kWorkspaceBytes,
                    c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

}  // namespace

at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, int64_t config) {
    return linear("linear_gelu", x, weight, bias, nullptr, config);
}

at::Tensor linear_residual(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                           const at::Tensor& residual, int64_t config) {
    return linear("linear_residual", x, weight, bias, &residual, config);
}

void register_linear(pybind11::module& m) {
    m.def("linear_gelu", &linear_gelu, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("config") = 0,
          R"doc(gelu(x W^T + b), GELU in its tanh form (torch.nn.GELU(approximate="tanh")).

x: (..., in_features) float32, contiguous, CUDA. weight: (out_features, in_features). bias: (out_features).
Returns a new tensor (..., out_features). Forward only.

config: precision, epilogue and choice of cuBLASLt algorithm
    0  TF32, fused epilogue, fastest algorithm (timed at the first call of a shape)
    1  TF32, fused epilogue, the heuristic's first algorithm
    2  TF32, epilogue in a pass of its own, fastest algorithm
    3  strict fp32, fused epilogue, fastest algorithm
    4  strict fp32, epilogue in a pass of its own, fastest algorithm

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
    m.def("linear_residual", &linear_residual, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("residual"), pybind11::arg("config") = 0,
          R"doc(x W^T + b + residual, in a new tensor.

x: (..., in_features) float32, contiguous, CUDA. weight: (out_features, in_features). bias: (out_features).
residual: (..., out_features), left unchanged. Returns a new tensor of residual's shape. Forward only.

config: as for linear_gelu.

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(linear, register_linear);
