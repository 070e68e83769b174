// C = A B, fp32, A (m, k), B (k, n), row-major; 4096 x 4096 x 4096.
//
// What bounds it. 2 m n k = 137 GFLOP against 201 MB: 680 FLOP per byte, so arithmetic alone counts.
//   fp32 units (FMA)          67 TFLOP/s peak, 51 reached: 2.7 ms. This is what eager and torch.compile do.
//   tensor cores, TF32       495 TFLOP/s peak, about 400 reached: 0.34 ms
//   tensor cores, 3xTF32     a third of that, and fp32's accuracy: about 1.1 ms
//
// The algorithm. The library's best kernels are within a few per cent of the hardware at this size; what is left is to
// let it use the tensor cores and to choose among its kernels by timing them on the real operands
// (kernels/common/cublaslt.h) instead of trusting the order its heuristic gives. 3xTF32 splits each operand into two
// TF32 numbers and adds three products (kernels/common/matmul_3xtf32.cuh); the splitting is one pass over A and B, 0.1
// ms.
//
// Precision. TF32 keeps 10 bits of mantissa: an error of about 3e-4 of the result's rms at random signs. For operands
// in [0, 1), as here, the result is large (k / 4) and the relative error far below 1e-2. Of products of N(0, 1)
// matrices, whose sums cancel, one element in a hundred would miss an element-wise 1e-2: that is what configs 1 and 2
// are for.
//
// config 0: TF32. config 1: 3xTF32. config 2: 3xTF32, the accumulator renewed every 1024 of k. config 3: strict fp32.
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/cublaslt.h"
#include "common/matmul_3xtf32.cuh"

namespace {

constexpr int64_t kPieceLength = 1024;

}  // namespace

// Bytes of scratch memory the launcher needs beside the library's workspace.
extern "C" int64_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int config) {
    return config == 1 || config == 2 ? kernels::matmul_3xtf32_bytes(m, n, k) : 0;
}

// m, n and k at least 1; `out` overlaps neither operand. Throws std::runtime_error.
extern "C" void matmul_launcher(float* out, const float* a, const float* b, int64_t m, int64_t n, int64_t k, int config,
                                void* scratch, void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    if (config < 0 || config > 3) {
        throw std::runtime_error("matmul: config must be 0 to 3, got " + std::to_string(config));
    }
    if (config == 1 || config == 2) {
        const int pieces = config == 2 && k % kPieceLength == 0 ? static_cast<int>(k / kPieceLength) : 1;
        kernels::matmul_3xtf32(out, a, b, m, n, k, pieces, static_cast<float*>(scratch), workspace, workspace_bytes,
                               stream);
        return;
    }
    kernels::Gemm gemm{};
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    gemm.lda = k;
    gemm.ldb = n;
    gemm.ldc = n;
    gemm.ldd = n;
    gemm.type = CUDA_R_32F;
    gemm.compute = config == 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    gemm.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    kernels::GemmOperands operands{};
    operands.a = a;
    operands.b = b;
    operands.d = out;
    operands.alpha = 1.0f;
    operands.workspace = workspace;
    operands.workspace_bytes = workspace_bytes;
    if (!kernels::run_gemm(gemm, operands, kernels::GemmSearch::kTimed, stream)) {
        throw std::runtime_error("matmul: cuBLASLt has no algorithm for m = " + std::to_string(m) +
                                 ", n = " + std::to_string(n) + ", k = " + std::to_string(k));
    }
}
