// Python bindings of linear.cu: one launcher, three operators.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void linear_launcher(float* y, const float* x, const float* weight, const float* bias, const float* residual,
                                bool gelu, int64_t rows, int64_t in_features, int64_t out_features, int config,
                                void* workspace, int64_t workspace_bytes, cudaStream_t stream);

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;  // what cuBLASLt may use for split-K on Hopper

torch::Tensor run_linear(const char* op, const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                         const torch::Tensor* residual, bool gelu, int64_t config) {
    kernels::check_tensor(x, op, "x", torch::kFloat32);  // (..., in_features)
    TORCH_CHECK(x.dim() >= 1 && x.size(-1) > 0, op, ": x must have at least one feature, but has shape ", x.sizes());
    TORCH_CHECK(weight.defined() && weight.dim() == 2, op, ": weight must be (out_features, in_features)");
    const int64_t in_features = x.size(-1);
    const int64_t out_features = weight.size(0);
    kernels::check_parameter(weight, op, "weight", torch::kFloat32, x, "x", {out_features, in_features},
                             "(out_features, in_features)");
    kernels::check_parameter(bias, op, "bias", torch::kFloat32, x, "x", {out_features}, "(out_features)");
    auto shape = x.sizes().vec();
    shape.back() = out_features;
    if (residual != nullptr) {
        kernels::check_tensor(*residual, op, "residual", torch::kFloat32);
        kernels::check_same_device(*residual, op, "residual", x, "x");
        TORCH_CHECK(residual->sizes() == torch::IntArrayRef(shape), op, ": residual must have the result's shape ",
                    torch::IntArrayRef(shape), ", but has ", residual->sizes());
    }
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty(shape, x.options());
    if (y.numel() == 0) return y;
    const torch::Tensor workspace = kernels::allocate_workspace(kWorkspaceBytes, x);
    linear_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                    residual != nullptr ? residual->data_ptr<float>() : nullptr, gelu, x.numel() / in_features,
                    in_features, out_features, checked_config, workspace.data_ptr(), kWorkspaceBytes,
                    c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

}  // namespace

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, int64_t config) {
    return run_linear("linear", x, weight, bias, nullptr, false, config);
}

torch::Tensor linear_gelu(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                          int64_t config) {
    return run_linear("linear_gelu", x, weight, bias, nullptr, true, config);
}

torch::Tensor linear_residual(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                              const torch::Tensor& residual, int64_t config) {
    return run_linear("linear_residual", x, weight, bias, &residual, false, config);
}

void register_linear(pybind11::module& m) {
    m.def("linear", &linear, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("config") = 0,
          R"doc(x W^T + b.

x: (..., in_features) float32, contiguous, CUDA. weight: (out_features, in_features). bias: (out_features).
Returns a new tensor (..., out_features).

config: precision
    0  TF32
    1  strict fp32

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
    m.def("linear_gelu", &linear_gelu, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("config") = 0,
          R"doc(gelu(x W^T + b), GELU in its tanh form. Arguments, result and errors as for linear.

config: precision
    0  TF32
    1  strict fp32
)doc");
    m.def("linear_residual", &linear_residual, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("residual"), pybind11::arg("config") = 0,
          R"doc(x W^T + b + residual, in a new tensor; residual has its shape. The rest as for linear.

config: precision
    0  TF32
    1  strict fp32
)doc");
}

REGISTER_BINDING(linear, register_linear);
