// Fully connected layers with what follows them in the same pass, fp32 in and out:
//
//     linear             y = x W^T + b
//     linear_gelu        y = gelu(x W^T + b)         gelu(u) = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))
//     linear_residual    y = x W^T + b + residual
//
// x (rows, in), W (out, in), b (out), y and residual (rows, out), row-major.
//
// What bounds it. The block's four layers at 8192 rows: 768 -> 2304 -> (attention) 768 -> 768, 768 -> 3072 -> 768: 116
// GFLOP, 0.29 ms on the tensor cores at 400 TFLOP/s TF32, against 2.3 ms on the fp32 units. Each pass over a result
// would add 12 to 50 us, so bias, GELU and residual are the product's epilogue: GELU_BIAS is the tanh form, the
// residual is its C operand with beta = 1. The library's kernel is chosen by timing, once per shape
// (kernels/common/cublaslt.h).
//
// config 0: TF32. config 1: strict fp32. Where the library cannot fuse an epilogue, a pass of its own takes its place.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/check.h"
#include "common/cublaslt.h"

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxGrid = 65535;

// y = f(y + bias) or y + bias + residual, in place; only where the library has no fused epilogue, so kept plain.
__global__ void __launch_bounds__(kThreads)
    linear_epilogue_kernel(float* __restrict__ y, const float* __restrict__ bias, const float* __restrict__ residual,
                           int64_t rows, int64_t columns, bool gelu) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int64_t column = threadIdx.x; column < columns; column += kThreads) {
            const int64_t at = row * columns + column;
            float u = y[at] + bias[column];
            if (gelu) u *= 0.5f + 0.5f * tanhf(0.7978845608028654f * (u + 0.044715f * u * u * u));
            if (residual != nullptr) u += residual[at];
            y[at] = u;
        }
    }
}

}  // namespace

// residual: null, or a tensor to add; not with gelu. y overlaps none of the others; every size at least 1.
extern "C" void linear_launcher(float* y, const float* x, const float* weight, const float* bias, const float* residual,
                                bool gelu, int64_t rows, int64_t in_features, int64_t out_features, int config,
                                void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("linear: config must be 0 or 1, got %d", config);
    }
    kernels::Gemm gemm = kernels::packed_gemm(rows, out_features, in_features, true,
                                              config == 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F);
    gemm.epilogue = gelu ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
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
    if (kernels::run_gemm(gemm, operands, kernels::GemmSearch::kTimed, stream)) return;

    gemm.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    operands.c = nullptr;
    operands.bias = nullptr;
    operands.beta = 0.0f;
    if (!kernels::run_gemm(gemm, operands, kernels::GemmSearch::kTimed, stream)) {
        kernels::throw_error("linear: cuBLASLt has no algorithm for rows = %ld, in_features = %ld, out_features = %ld",
                             rows, in_features, out_features);
    }
    linear_epilogue_kernel<<<static_cast<unsigned>(std::min(rows, kMaxGrid)), kThreads, 0, stream>>>(
        y, bias, residual, rows, out_features, gelu);
    CUDA_CHECK_LAUNCH();
}
