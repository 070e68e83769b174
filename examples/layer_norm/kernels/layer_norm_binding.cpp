// Python binding of layer_norm.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" int64_t layer_norm_workspace_bytes(int64_t rows, int64_t length);
extern "C" void layer_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t rows, int64_t length, float epsilon, void* workspace, int config,
                                    cudaStream_t stream);

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, double eps,
                         int64_t config) {
    constexpr const char* op = "layer_norm";
    kernels::check_tensor(x, op, "x", torch::kFloat32);            // (rows, *weight.shape)
    kernels::check_tensor(weight, op, "weight", torch::kFloat32);  // the normalised dimensions, the last ones of x
    kernels::check_tensor(bias, op, "bias", torch::kFloat32);
    kernels::check_same_device(weight, op, "weight", x, "x");
    kernels::check_same_device(bias, op, "bias", x, "x");
    TORCH_CHECK(bias.sizes() == weight.sizes(), op, ": bias must have weight's shape ", weight.sizes(), ", but has ",
                bias.sizes());
    TORCH_CHECK(x.dim() >= weight.dim() && x.sizes().slice(x.dim() - weight.dim()) == weight.sizes(), op,
                ": weight must have the shape of x's last dimensions; x has ", x.sizes(), ", weight ", weight.sizes());
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;
    const int64_t length = weight.numel();
    const int64_t rows = x.numel() / length;
    const torch::Tensor workspace = kernels::allocate_workspace(layer_norm_workspace_bytes(rows, length), x);
    layer_norm_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                        rows, length, static_cast<float>(eps), workspace.data_ptr(), checked_config,
                        c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_layer_norm(pybind11::module& m) {
    m.def("layer_norm", &layer_norm, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("eps") = 1e-5, pybind11::arg("config") = 0,
          R"doc(Layer normalisation over the last dimensions: (x - mean) / sqrt(var + eps) * weight + bias.

x: (..., *weight.shape) float32, contiguous, CUDA. weight, bias: of one shape, float32.
Returns a new tensor of x's shape.

config:
    0  rows of 4 or more slices of 16384 or 32768 elements, one slice per SM, held on chip and read once; others as 1
    1  two kernels, which read x twice

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(layer_norm, register_layer_norm);
