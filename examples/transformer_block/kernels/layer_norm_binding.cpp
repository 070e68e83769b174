// Python binding of layer_norm.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void layer_norm_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t rows,
                                    int width, float epsilon, cudaStream_t stream);

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, double eps) {
    constexpr const char* op = "layer_norm";
    kernels::check_tensor(x, op, "x", torch::kFloat32);  // (..., width)
    TORCH_CHECK(x.dim() >= 1, op, ": x must have at least one dimension");
    const int64_t width = x.size(-1);
    TORCH_CHECK(width > 0 && width <= 1024 && width % 4 == 0, op,
                ": the last dimension must be a multiple of 4, at most 1024, but is ", width);
    kernels::check_parameter(weight, op, "weight", torch::kFloat32, x, "x", {width}, "(width)");
    kernels::check_parameter(bias, op, "bias", torch::kFloat32, x, "x", {width}, "(width)");
    kernels::check_aligned(x, op, "x", 16);
    kernels::check_aligned(weight, op, "weight", 16);
    kernels::check_aligned(bias, op, "bias", 16);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;
    layer_norm_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                        x.numel() / width, static_cast<int>(width), static_cast<float>(eps),
                        c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_layer_norm(pybind11::module& m) {
    m.def("layer_norm", &layer_norm, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("eps") = 1e-5,
          R"doc(Layer normalisation over the last dimension: (x - mean) / sqrt(var + eps) * weight + bias.

x: (..., width) float32, contiguous, CUDA, width a multiple of 4, at most 1024. weight, bias: (width) float32.
Returns a new tensor of x's shape.

Raises RuntimeError for a wrong device, dtype, shape or layout.)doc");
}

REGISTER_BINDING(layer_norm, register_layer_norm);
