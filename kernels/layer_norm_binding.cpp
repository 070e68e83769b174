// Python binding of layer_norm.cu.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void layer_norm_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t rows,
                                    int64_t n, float eps, int config, cudaStream_t stream);

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                      int64_t config) {
    constexpr const char* op = "layer_norm";
    kernels::check_tensor(x, op, "x", at::kFloat);  // (..., n)
    TORCH_CHECK(x.dim() >= 1, op, ": x must have at least one dimension");
    const int64_t n = x.size(-1);
    kernels::check_parameter(weight, op, "weight", at::kFloat, x, "x", {n}, "(n)");
    kernels::check_parameter(bias, op, "bias", at::kFloat, x, "x", {n}, "(n)");

    const c10::cuda::CUDAGuard guard(x.device());
    at::Tensor y = kernels::empty(x.sizes(), x.options());
    if (y.numel() == 0) return y;
    layer_norm_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                        x.numel() / n, n, static_cast<float>(eps), kernels::checked_config(config, op),
                        c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_layer_norm(pybind11::module& m) {
    m.def("layer_norm", &layer_norm, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("eps") = 1e-5, pybind11::arg("config") = 0,
          R"doc(Layer normalisation over the last dimension: (x - mean) / sqrt(var + eps) * weight + bias.

x: (..., n) float32, contiguous, CUDA. weight, bias: (n) float32. Returns a new tensor of x's shape. Forward only.

config: how rows of up to 1024 elements are spread over threads (longer rows take one block each, whatever it says)
    0  one warp per row, 8 rows per block
    1  one warp per row, 4 rows per block
    2  one warp per row, 16 rows per block
    3  one block of 256 threads per row

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(layer_norm, register_layer_norm);
