// Python binding of gated.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "../binding_registry.h"

extern "C" void gated_launcher(float* y, const float* x, const float* gate, int64_t count, int config,
                               cudaStream_t stream);

torch::Tensor gated_forward(const torch::Tensor& x, const torch::Tensor& gate, int64_t config) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous(), "gated: x must be a contiguous CUDA tensor");
    TORCH_CHECK(gate.is_cuda() && gate.is_contiguous(), "gated: gate must be a contiguous CUDA tensor");
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "gated: x must be float32, but is ", x.scalar_type());
    TORCH_CHECK(gate.scalar_type() == torch::kFloat32, "gated: gate must be float32, but is ", gate.scalar_type());
    TORCH_CHECK(x.sizes() == gate.sizes(), "gated: x is ", x.sizes(), ", but gate is ", gate.sizes());
    TORCH_CHECK(x.device() == gate.device(), "gated: x is on ", x.device(), ", but gate is on ", gate.device());

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    gated_launcher(y.data_ptr<float>(), x.data_ptr<float>(), gate.data_ptr<float>(), x.numel(),
                   static_cast<int>(config), c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_gated(pybind11::module& m) {
    m.def("gated_forward", &gated_forward, "x * sigmoid(gate), elementwise, for contiguous float32 CUDA tensors",
          pybind11::arg("x"), pybind11::arg("gate"), pybind11::arg("config") = 0);
}

REGISTER_BINDING(gated, register_gated);
