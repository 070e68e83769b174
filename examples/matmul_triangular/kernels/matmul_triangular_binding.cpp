// Python binding of matmul_triangular.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void matmul_triangular_launcher(float* c, const float* a, const float* b, int n, int config,
                                           cudaStream_t stream);

torch::Tensor matmul_triangular(const torch::Tensor& a, const torch::Tensor& b, int64_t config) {
    constexpr const char* op = "matmul_triangular";
    kernels::check_tensor(a, op, "a", torch::kFloat32);  // (n, n)
    TORCH_CHECK(a.dim() == 2 && a.size(0) == a.size(1), op, ": a must be square, but has shape ", a.sizes());
    const int64_t n = a.size(0);
    kernels::check_parameter(b, op, "b", torch::kFloat32, a, "a", {n, n}, "(n, n)");
    TORCH_CHECK(n % 4 == 0, op, ": n must be a multiple of 4, since rows are read 16 bytes at a time, but is ", n);
    TORCH_CHECK(n <= 1000000, op, ": n must be at most 1000000, but is ", n);
    kernels::check_aligned(a, op, "a", 16);
    kernels::check_aligned(b, op, "b", 16);
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(a.device());
    torch::Tensor c = torch::empty_like(a);
    if (n == 0) return c;
    matmul_triangular_launcher(c.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), static_cast<int>(n),
                               checked_config, c10::cuda::getCurrentCUDAStream().stream());
    return c;
}

void register_matmul_triangular(pybind11::module& m) {
    m.def("matmul_triangular", &matmul_triangular, pybind11::arg("a"), pybind11::arg("b"), pybind11::arg("config") = 0,
          R"doc(The product of two upper triangular matrices, in TF32.

a, b: (n, n) float32, contiguous, CUDA, zero below the diagonal (not checked), n a multiple of 4.
Returns (n, n), zero below the diagonal.

config: how the work is spread
    0  long tiles are cut in two
    1  each tile is one block's

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(matmul_triangular, register_matmul_triangular);
