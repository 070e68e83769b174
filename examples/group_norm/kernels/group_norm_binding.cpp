// Python binding of group_norm.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" int64_t group_norm_workspace_bytes(int64_t segments, int64_t segment_length);
extern "C" void group_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t samples, int64_t channels, int64_t positions, int64_t groups, float epsilon,
                                    void* workspace, int config, cudaStream_t stream);

torch::Tensor group_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, int64_t groups,
                         double eps, int64_t config) {
    constexpr const char* op = "group_norm";
    kernels::check_tensor(x, op, "x", torch::kFloat32);  // (samples, channels, *positions)
    TORCH_CHECK(x.dim() >= 2, op, ": x must be (samples, channels, ...), but has shape ", x.sizes());
    const int64_t channels = x.size(1);
    kernels::check_parameter(weight, op, "weight", torch::kFloat32, x, "x", {channels}, "(channels)");
    kernels::check_parameter(bias, op, "bias", torch::kFloat32, x, "x", {channels}, "(channels)");
    TORCH_CHECK(groups > 0 && channels % groups == 0, op, ": groups must divide the ", channels, " channels, but is ",
                groups);
    TORCH_CHECK(x.size(0) <= 1000000 && channels <= 1000000, op, ": more than a million samples or channels");
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    if (y.numel() == 0) return y;
    const int64_t samples = x.size(0);
    const int64_t positions = x.numel() / (samples * channels);
    const int64_t bytes = group_norm_workspace_bytes(samples * groups, channels / groups * positions);
    const torch::Tensor workspace = kernels::allocate_workspace(bytes, x);
    group_norm_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(),
                        samples, channels, positions, groups, static_cast<float>(eps), workspace.data_ptr(),
                        checked_config, c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_group_norm(pybind11::module& m) {
    m.def("group_norm", &group_norm, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("groups"), pybind11::arg("eps") = 1e-5, pybind11::arg("config") = 0,
          R"doc(Group normalisation: (x - mean) / sqrt(var + eps) * weight + bias, statistics per sample and group.

x: (samples, channels, ...) float32, contiguous, CUDA. weight, bias: (channels) float32.
Returns a new tensor of x's shape.

config:
    0  groups of 4 or more slices of 16384 or 32768 elements, one slice per SM, held on chip and read once; else 1
    1  two kernels, which read x twice

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(group_norm, register_group_norm);
