// Python binding of softmax_rows.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void softmax_rows_launcher(float* output, const float* input, int64_t rows, int64_t cols, int config,
                                      cudaStream_t stream);

torch::Tensor softmax_rows(const torch::Tensor& input, int64_t config) {
    constexpr const char* op = "softmax_rows";
    kernels::check_tensor(input, op, "input", torch::kFloat32);  // (rows, cols)
    TORCH_CHECK(input.dim() == 2, op, ": input must be (rows, cols), but has shape ", input.sizes());
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(input.device());
    torch::Tensor output = torch::empty_like(input);
    if (output.numel() == 0) return output;
    softmax_rows_launcher(output.data_ptr<float>(), input.data_ptr<float>(), input.size(0), input.size(1),
                          checked_config, c10::cuda::getCurrentCUDAStream().stream());
    return output;
}

void register_softmax_rows(pybind11::module& m) {
    m.def("softmax_rows", &softmax_rows, pybind11::arg("input"), pybind11::arg("config") = 0,
          R"doc(Softmax over the rows of a matrix.

input: (rows, cols) float32, contiguous, CUDA. Returns a new tensor of its shape.

config:
    0  rows of 98304 to 393216 columns spread over a cluster of 8 blocks and read once; other rows as 1
    1  one block per row, which it reads twice

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(softmax_rows, register_softmax_rows);
