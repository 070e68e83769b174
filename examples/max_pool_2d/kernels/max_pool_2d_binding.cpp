// Python binding of max_pool_2d.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void max_pool_2d_launcher(float* output, const float* input, int64_t planes, int height, int width,
                                     int config, cudaStream_t stream);

torch::Tensor max_pool_2d(const torch::Tensor& input, int64_t config) {
    constexpr const char* op = "max_pool_2d";
    kernels::check_tensor(input, op, "input", torch::kFloat32);  // (n, channels, height, width)
    TORCH_CHECK(input.dim() == 4, op, ": input must be (n, channels, height, width), but has shape ", input.sizes());
    const int64_t height = input.size(2);
    const int64_t width = input.size(3);
    TORCH_CHECK(height >= 2 && width >= 2, op, ": height and width must be at least 2, but are ", height, " and ",
                width);
    TORCH_CHECK(height * width < (int64_t{1} << 31), op, ": a plane must have fewer than 2^31 elements");
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(input.device());
    torch::Tensor output = torch::empty({input.size(0), input.size(1), height - 1, width - 1}, input.options());
    if (output.numel() == 0) return output;
    max_pool_2d_launcher(output.data_ptr<float>(), input.data_ptr<float>(), input.size(0) * input.size(1),
                         static_cast<int>(height), static_cast<int>(width), checked_config,
                         c10::cuda::getCurrentCUDAStream().stream());
    return output;
}

void register_max_pool_2d(pybind11::module& m) {
    m.def("max_pool_2d", &max_pool_2d, pybind11::arg("input"), pybind11::arg("config") = 0,
          R"doc(Max pooling with a 4 x 4 window, stride 1 and a padding of 1 that acts as -inf. NaN wins.

input: (n, channels, height, width) float32, contiguous, CUDA, height and width at least 2.
Returns (n, channels, height - 1, width - 1).

config:
    0  a warp walks down each plane and reads every element once (width <= 512; wider planes as 1)
    1  one thread per output

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(max_pool_2d, register_max_pool_2d);
