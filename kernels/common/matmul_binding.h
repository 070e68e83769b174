// The binding of matmul.cuh: checks, memory, and the words in Python's help.
#pragma once

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "common/tensor_checks.h"

extern "C" int64_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int config);
extern "C" void matmul_launcher(float* out, const float* a, const float* b, int64_t m, int64_t n, int64_t k, int config,
                                void* scratch, void* workspace, int64_t workspace_bytes, cudaStream_t stream);

namespace kernels {

inline torch::Tensor matmul(const torch::Tensor& a, const torch::Tensor& b, int64_t config) {
    constexpr const char* op = "matmul";
    constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;  // what cuBLASLt may use for split-K on Hopper
    check_tensor(a, op, "a", torch::kFloat32);              // (m, k)
    check_tensor(b, op, "b", torch::kFloat32);              // (k, n)
    TORCH_CHECK(a.dim() == 2 && b.dim() == 2, op, ": a and b must be matrices, but have shapes ", a.sizes(), " and ",
                b.sizes());
    TORCH_CHECK(a.size(1) == b.size(0), op, ": a has ", a.size(1), " columns, but b has ", b.size(0), " rows");
    TORCH_CHECK(a.size(1) > 0, op, ": the common dimension must be at least 1");
    check_same_device(b, op, "b", a, "a");
    const int chosen = checked_config(config, op);

    const c10::cuda::CUDAGuard guard(a.device());
    const int64_t m = a.size(0);
    const int64_t n = b.size(1);
    const int64_t k = a.size(1);
    torch::Tensor out = torch::empty({m, n}, a.options());
    if (out.numel() == 0) return out;
    const torch::Tensor scratch = allocate_workspace(matmul_scratch_bytes(m, n, k, chosen), a);
    const torch::Tensor workspace = allocate_workspace(kWorkspaceBytes, a);
    matmul_launcher(out.data_ptr<float>(), a.data_ptr<float>(), b.data_ptr<float>(), m, n, k, chosen,
                    scratch.data_ptr(), workspace.data_ptr(), kWorkspaceBytes,
                    c10::cuda::getCurrentCUDAStream().stream());
    return out;
}

inline void register_matmul(pybind11::module& m) {
    m.def("matmul", &matmul, pybind11::arg("a"), pybind11::arg("b"), pybind11::arg("config") = 0,
          R"doc(The matrix product a b.

a: (m, k), b: (k, n), float32, contiguous, CUDA. Returns (m, n).

config: precision
    0  TF32
    1  3xTF32: fp32-class accuracy from three TF32 products
    2  3xTF32, the accumulator renewed every 1024 of k
    3  strict fp32

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

}  // namespace kernels
