// Python binding of linear_silu_scale.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void linear_silu_scale_launcher(float* y, const float* x, const float* weight, const float* bias,
                                           float scale, int64_t rows, int64_t in_features, int64_t out_features,
                                           int config, void* workspace, int64_t workspace_bytes, cudaStream_t stream);

namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;  // what cuBLASLt may use for split-K on Hopper

}  // namespace

torch::Tensor linear_silu_scale(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                double scale, int64_t config) {
    constexpr const char* op = "linear_silu_scale";
    kernels::check_tensor(x, op, "x", torch::kFloat32);  // (rows, in_features)
    TORCH_CHECK(x.dim() == 2 && x.size(1) > 0, op, ": x must be (rows, in_features), but has shape ", x.sizes());
    TORCH_CHECK(weight.defined() && weight.dim() == 2, op, ": weight must be (out_features, in_features)");
    const int64_t rows = x.size(0);
    const int64_t in_features = x.size(1);
    const int64_t out_features = weight.size(0);
    kernels::check_parameter(weight, op, "weight", torch::kFloat32, x, "x", {out_features, in_features},
                             "(out_features, in_features)");
    kernels::check_parameter(bias, op, "bias", torch::kFloat32, x, "x", {out_features}, "(out_features)");
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty({rows, out_features}, x.options());
    if (y.numel() == 0) return y;
    const torch::Tensor workspace = kernels::allocate_workspace(kWorkspaceBytes, x);
    linear_silu_scale_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(),
                               bias.data_ptr<float>(), static_cast<float>(scale), rows, in_features, out_features,
                               checked_config, workspace.data_ptr(), kWorkspaceBytes,
                               c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_linear_silu_scale(pybind11::module& m) {
    m.def("linear_silu_scale", &linear_silu_scale, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("scale"), pybind11::arg("config") = 0,
          R"doc(scale * silu(x W^T + b).

x: (rows, in_features) float32, contiguous, CUDA. weight: (out_features, in_features). bias: (out_features).
Returns (rows, out_features).

config: precision, and where the bias is added
    0  TF32, in the product's epilogue
    1  strict fp32, in the product's epilogue
    2  TF32, in the pass that applies SiLU

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(linear_silu_scale, register_linear_silu_scale);
