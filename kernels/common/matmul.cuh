// C = A B, fp32 in and out, at three precisions: what the workspaces of plain products share.
//
//   config 0  TF32 tensor cores      config 1  3xTF32      config 2  3xTF32, renewed every 1024 of k      config 3 fp32
//
// The library's kernels are chosen by timing them on the real operands (cublaslt.h); 3xTF32 is matmul_3xtf32.cuh's.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/cublaslt.h"
#include "common/matmul_3xtf32.cuh"

namespace kernels {

// Bytes of scratch memory that `matmul` needs beside the library's workspace.
inline int64_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int config) {
    return config == 1 || config == 2 ? matmul_3xtf32_bytes(m, n, k) : 0;
}

// out (m, n) = a (m, k) b (k, n), row-major; m, n and k at least 1; `out` overlaps neither operand. Throws
// Error for another config, and where the library has no algorithm.
inline void matmul(float* out, const float* a, const float* b, int64_t m, int64_t n, int64_t k, int config,
                   void* scratch, void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    constexpr int64_t kPieceLength = 1024;
    if (config < 0 || config > 3) {
        throw_error("matmul: config must be 0 to 3, got %d", config);
    }
    if (config == 1 || config == 2) {
        const int pieces = config == 2 && k % kPieceLength == 0 ? static_cast<int>(k / kPieceLength) : 1;
        matmul_3xtf32(out, a, b, m, n, k, pieces, static_cast<float*>(scratch), workspace, workspace_bytes, stream);
        return;
    }
    const Gemm gemm = packed_gemm(m, n, k, false, config == 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
    GemmOperands operands{};
    operands.a = a;
    operands.b = b;
    operands.d = out;
    operands.alpha = 1.0f;
    operands.workspace = workspace;
    operands.workspace_bytes = workspace_bytes;
    if (!run_gemm(gemm, operands, GemmSearch::kTimed, stream)) {
        throw_error("matmul: cuBLASLt has no algorithm for m = %ld, n = %ld, k = %ld", m, n, k);
    }
}

}  // namespace kernels
