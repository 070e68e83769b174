// Fully connected layers with everything that follows them in the same pass, fp32 in and out:
//
//     linear_gelu        y = gelu(x W^T + b)         gelu(u) = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))
//     linear_residual    y = x W^T + b + residual
//
// x: (rows, in), W: (out, in), b: (out), y and residual: (rows, out), all row-major.
//
// Bound: the tensor cores. 12544 x 768 -> 3072 is 59.2 GFLOP, 0.15 ms at 400 TFLOP/s in TF32 (1.1 ms on the fp32
// units); y alone is 154 MB, 36 us at 4.3 TB/s, so each extra pass over it costs a quarter of the product itself. Hence
// the epilogues are left to cuBLASLt: bias and GELU (CUBLASLT_EPILOGUE_GELU_BIAS is the tanh form), and the residual as
// the product's C operand with beta = 1, read once from where it lies and written elsewhere (D != C).
//
// Seen on an H200 with cuBLASLt 13.1: bias and residual do act on the accumulators, but GELU runs as a kernel of the
// library's own after the product, so configs 0 and 2 cost the same (docs/measurements/default_kernels.md). A product
// of our own with GELU in its epilogue would save that pass; cuBLASLt is kept for its TF32 product.
//
// Precision: TF32 rounds the operands to 10 bits of mantissa and accumulates in fp32; strict fp32 uses the FMA units.
//
//     config   precision   epilogue                         algorithm
//     0        TF32        fused                            fastest of up to 32, timed once per shape
//     1        TF32        fused                            the heuristic's first
//     2        TF32        a pass of its own (linear.cu)    fastest of up to 32
//     3        fp32        fused                            fastest of up to 32
//     4        fp32        a pass of its own                fastest of up to 32
//
// Where cuBLASLt cannot fuse an epilogue (odd shapes at some precisions) the pass of its own takes its place.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/check.h"
#include "common/cublaslt.h"

// In linear.cu.
extern "C" void linear_epilogue_launcher(float* y, const float* bias, const float* residual, int64_t rows,
                                         int64_t columns, cudaStream_t stream);

// residual null: linear_gelu; otherwise linear_residual. Device pointers, contiguous, y overlapping none of the others;
// rows, in_features and out_features at least 1; up to 32 MiB of workspace are of use. Throws kernels::Error.
extern "C" void linear_launcher(float* y, const float* x, const float* weight, const float* bias, const float* residual,
                                int64_t rows, int64_t in_features, int64_t out_features, int config, void* workspace,
                                int64_t workspace_bytes, cudaStream_t stream) {
    if (config < 0 || config > 4) {
        kernels::throw_error("linear: config must be 0 to 4, got %d", config);
    }
    const bool strict = config >= 3;
    const bool fused = config != 2 && config != 4;
    const auto search = config == 1 ? kernels::GemmSearch::kHeuristic : kernels::GemmSearch::kTimed;

    kernels::Gemm gemm = kernels::packed_gemm(rows, out_features, in_features, true,
                                              strict ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32);
    gemm.epilogue = residual == nullptr ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;

    kernels::GemmOperands operands{};
    operands.a = x;
    operands.b = weight;
    operands.c = residual;
    operands.bias = bias;
    operands.d = y;
    operands.alpha = 1.0f;
    operands.beta = residual != nullptr ? 1.0f : 0.0f;
    operands.workspace = workspace;
    operands.workspace_bytes = workspace_bytes;
    if (fused && kernels::run_gemm(gemm, operands, search, stream)) return;

    gemm.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    operands.c = nullptr;
    operands.bias = nullptr;
    operands.beta = 0.0f;
    if (!kernels::run_gemm(gemm, operands, search, stream)) {
        kernels::throw_error("linear: cuBLASLt has no algorithm for rows = %ld, in_features = %ld, out_features = %ld",
                             rows, in_features, out_features);
    }
    linear_epilogue_launcher(y, bias, residual, rows, out_features, stream);
}
