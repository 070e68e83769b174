// Python binding of cross_entropy.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" int64_t cross_entropy_workspace_bytes();
extern "C" void cross_entropy_launcher(float* loss, const float* logits, const int64_t* targets, int64_t rows,
                                       int64_t classes, int64_t ignored_target, void* workspace, int config,
                                       cudaStream_t stream);

torch::Tensor cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets, int64_t ignore_index,
                            int64_t config) {
    constexpr const char* op = "cross_entropy";
    kernels::check_tensor(logits, op, "logits", torch::kFloat32);  // (rows, classes)
    TORCH_CHECK(logits.dim() == 2, op, ": logits must be (rows, classes), but have shape ", logits.sizes());
    TORCH_CHECK(logits.size(1) > 0, op, ": logits must have at least one class");
    kernels::check_parameter(targets, op, "targets", torch::kInt64, logits, "logits", {logits.size(0)}, "(rows)");
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(logits.device());
    torch::Tensor loss = torch::empty({}, logits.options());
    const torch::Tensor workspace = kernels::allocate_workspace(cross_entropy_workspace_bytes(), logits);
    cross_entropy_launcher(loss.data_ptr<float>(), logits.data_ptr<float>(), targets.data_ptr<int64_t>(),
                           logits.size(0), logits.size(1), ignore_index, workspace.data_ptr(), checked_config,
                           c10::cuda::getCurrentCUDAStream().stream());
    return loss;
}

void register_cross_entropy(pybind11::module& m) {
    m.def("cross_entropy", &cross_entropy, pybind11::arg("logits"), pybind11::arg("targets"),
          pybind11::arg("ignore_index") = -100, pybind11::arg("config") = 0,
          R"doc(Cross entropy of logits against class indices, averaged over the rows; NaN where no row counts.

logits: (rows, classes) float32, contiguous, CUDA. targets: (rows) int64; rows whose target is ignore_index count for
nothing, any other target outside 0 .. classes - 1 makes the loss NaN. Returns a scalar tensor.

config: threads per block
    0  256
    1  128
    2  512

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(cross_entropy, register_cross_entropy);
