// Fully connected layers with everything that follows them in the same pass, fp32 in and out:
//
//     linear_gelu        y = gelu(x W^T + b)         gelu(u) = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))
//     linear_residual    y = x W^T + b + residual
//
// x: (rows, in), W: (out, in), b: (out), y and residual: (rows, out), all row-major.
//
// Bound: the tensor cores. 12544 x 768 -> 3072 is 59.2 GFLOP, 0.15 ms at 400 TFLOP/s in TF32 (1.1 ms on the fp32
// units); y alone is 154 MB, 36 us at 4.3 TB/s, so each extra pass over it costs a quarter of the product itself. Hence
// the fused epilogues: bias and GELU act on the accumulators (CUBLASLT_EPILOGUE_GELU_BIAS is the tanh form), and the
// residual is the product's C operand with beta = 1, read once from where it lies and written elsewhere (D != C).
//
// Precision: TF32 rounds the operands to 10 bits of mantissa and accumulates in fp32; strict fp32 uses the FMA units.
//
//     config   precision   epilogue                         algorithm
//     0        TF32        fused                            fastest of up to 32, timed once per shape
//     1        TF32        fused                            the heuristic's first
//     2        TF32        a pass of its own (raw CUDA)     fastest of up to 32
//     3        fp32        fused                            fastest of up to 32
//     4        fp32        a pass of its own                fastest of up to 32
//
// Where cuBLASLt cannot fuse an epilogue (odd shapes at some precisions) the pass of its own takes its place.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check.h"
#include "common/cublaslt.h"
#include "common/vector.cuh"

namespace {

using kernels::Vector;

constexpr int kEpilogueThreads = 256;
constexpr int64_t kMaxGrid = 2147483647;

__device__ __forceinline__ float gelu_tanh(float u) {
    constexpr float kSqrtTwoOverPi = 0.7978845608028654f;
    constexpr float kCubic = 0.044715f;
    return 0.5f * u * (1.0f + tanhf(kSqrtTwoOverPi * (u + kCubic * u * u * u)));
}

// y = gelu(y + bias) or y + bias + residual, in place. A block takes whole rows: the bias needs no index arithmetic.
template <int Width, bool Gelu>
__global__ void __launch_bounds__(kEpilogueThreads)
    linear_epilogue_kernel(float* __restrict__ y, const float* __restrict__ bias, const float* __restrict__ residual,
                           int64_t rows, int64_t columns) {
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        for (int64_t column = int64_t{Width} * threadIdx.x; column < columns; column += Width * kEpilogueThreads) {
            const int64_t offset = row * columns + column;
            Vector<float, Width> value = kernels::load<Width>(y + offset);
            const Vector<float, Width> addend = kernels::load<Width>(bias + column);
            Vector<float, Width> other{};
            if constexpr (!Gelu) other = kernels::load<Width>(residual + offset);
#pragma unroll
            for (int i = 0; i < Width; ++i) {
                const float sum = value.element[i] + addend.element[i];
                value.element[i] = Gelu ? gelu_tanh(sum) : sum + other.element[i];
            }
            kernels::store<Width>(y + offset, value);
        }
    }
}

template <int Width>
void launch_epilogue(float* y, const float* bias, const float* residual, int64_t rows, int64_t columns,
                     cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(std::min(rows, kMaxGrid));
    if (residual == nullptr) {
        linear_epilogue_kernel<Width, true><<<grid, kEpilogueThreads, 0, stream>>>(y, bias, nullptr, rows, columns);
    } else {
        linear_epilogue_kernel<Width, false><<<grid, kEpilogueThreads, 0, stream>>>(y, bias, residual, rows, columns);
    }
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// residual null: linear_gelu; otherwise linear_residual. Device pointers, contiguous, y overlapping none of the others;
// rows, in_features and out_features at least 1; up to 32 MiB of workspace are of use. Throws std::runtime_error.
extern "C" void linear_launcher(float* y, const float* x, const float* weight, const float* bias, const float* residual,
                                int64_t rows, int64_t in_features, int64_t out_features, int config, void* workspace,
                                int64_t workspace_bytes, cudaStream_t stream) {
    if (config < 0 || config > 4) {
        throw std::runtime_error("linear: config must be 0 to 4, got " + std::to_string(config));
    }
    const bool strict = config >= 3;
    const bool fused = config != 2 && config != 4;
    const auto search = config == 1 ? kernels::GemmSearch::kHeuristic : kernels::GemmSearch::kTimed;

    kernels::Gemm gemm{};
    gemm.m = rows;
    gemm.n = out_features;
    gemm.k = in_features;
    gemm.transpose_b = true;  // W is stored (out, in)
    gemm.lda = in_features;
    gemm.ldb = in_features;
    gemm.ldc = out_features;
    gemm.ldd = out_features;
    gemm.type = CUDA_R_32F;
    gemm.compute = strict ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32;
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
        throw std::runtime_error("linear: cuBLASLt has no algorithm for rows = " + std::to_string(rows) +
                                 ", in_features = " + std::to_string(in_features) +
                                 ", out_features = " + std::to_string(out_features));
    }
    const bool vectorized = out_features % 4 == 0 && kernels::is_aligned(y, kernels::kVectorBytes) &&
                            kernels::is_aligned(bias, kernels::kVectorBytes) &&
                            kernels::is_aligned(residual, kernels::kVectorBytes);
    if (vectorized) {
        launch_epilogue<4>(y, bias, residual, rows, out_features, stream);
    } else {
        launch_epilogue<1>(y, bias, residual, rows, out_features, stream);
    }
}
