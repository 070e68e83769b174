// expect: nothing
// The founding document's binding, with the checks people add.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

// torch::matmul and a @ b are only words here.
extern "C" void row_max_launcher(float* out, const float* x, int rows, int n, int config, cudaStream_t stream);

#define CHECK_INPUT(x) TORCH_CHECK((x).is_cuda() && (x).is_contiguous(), #x " must be a contiguous CUDA tensor")

namespace {

struct Cache {
    std::map<int, torch::Tensor> buffers;
    int count = 0;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::vector<torch::Tensor> row_max_forward(torch::Tensor input, c10::optional<torch::Tensor> bias,
                                           const torch::Tensor* residual, double eps, int config = 0) {
    CHECK_INPUT(input);
    TORCH_CHECK(input.dim() == 2 && input.dtype() == torch::kFloat32, "input must be 2-D float32, not ", input.sizes());
    TORCH_CHECK(input.scalar_type() == at::ScalarType::Float, "float");
    if (bias.has_value()) TORCH_CHECK(bias->size(0) == input.size(1));
    if (residual != nullptr && residual->defined()) CHECK_INPUT(*residual);
    const c10::cuda::OptionalCUDAGuard guard(device_of(input));
    const int64_t rows = input.size(0), n = input.numel() / std::max<int64_t>(rows, 1);
    std::array<int64_t, 2> shape = {rows, 1};
    std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
    sizes.back() = 1;
    std::sort(sizes.begin(), sizes.end());
    std::fill(shape.begin(), shape.end(), 1);
    auto options = torch::TensorOptions().dtype(torch::kFloat32).device(input.device());
    auto output = torch::empty({rows}, options);
    auto scratch = torch::zeros({ceil_div(n, 256)}, input.options().dtype(torch::kInt32));
    torch::Tensor dense = input.contiguous();
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream().stream();
    const float* bias_pointer = bias.has_value() ? bias->data_ptr<float>() : nullptr;
    row_max_launcher(output.data_ptr<float>(), dense.data_ptr<float>(), static_cast<int>(rows), static_cast<int>(n),
                     config, stream);
    (void)bias_pointer;
    return {output.view({-1, 1}).transpose(0, 1), output.unsqueeze(0), scratch};
}

void register_row_max(pybind11::module& m) {
    m.def("row_max_forward", &row_max_forward, "Largest entry of each row", py::arg("input"), py::arg("bias") = py::none(),
          py::arg("residual"), py::arg("eps") = 1e-5, py::arg("config") = 0);
}
