// y = scale * silu(x W^T + b), fp32;  silu(u) = u / (1 + exp(-u));  x (rows, in), W (out, in), b (out), row-major.
//
// What bounds it. At 1024 x 8192 x 8192: 137 GFLOP. On the fp32 units, as eager and torch.compile run it, 2.7 ms. On
// the tensor cores in TF32 at about 400 TFLOP/s, 0.34 ms. The bytes, 336 MB of which 268 MB are the weights, take 0.08
// ms and hide behind the product. What remains is the tail: y is 34 MB, and each pass over it costs 8 us from L2, 16 us
// from memory.
//
// The algorithm. cuBLASLt adds the bias in the product's epilogue but knows no SiLU. One pass follows, in place: y was
// just written and is smaller than L2 (60 MB), so most of it is read from there, and memory sees little but the final
// write. The product's kernel is chosen by timing the library's candidates on the real operands
// (kernels/common/cublaslt.h): with only 1024 rows, 256 tiles of 128 x 256 fill 132 SMs 1.94 times, so tile shape and
// splits of k matter.
//
// config 0: TF32. config 1: strict fp32. config 2: TF32, bias in the pass instead of the product's epilogue.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/check.h"
#include "common/cublaslt.h"
#include "common/vector.cuh"

namespace {

using kernels::Vector;

constexpr int kThreads = 256;
constexpr int64_t kMaxGridRows = 65535;

__device__ __forceinline__ float silu(float u) {
    return __fdividef(u, 1.0f + __expf(-u));
}

// In place. Grid: x covers a row, y strides over rows. Bias: null where the product has added it.
template <int Width>
__global__ void __launch_bounds__(kThreads) silu_scale_kernel(float* __restrict__ y, const float* __restrict__ bias,
                                                              float scale, int64_t rows, int64_t columns) {
    const int64_t column = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * Width;
    if (column >= columns) return;
    Vector<float, Width> addend{};
    if (bias != nullptr) addend = kernels::load<Width>(bias + column);
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        float* at = y + row * columns + column;
        Vector<float, Width> value = kernels::load<Width>(at);
#pragma unroll
        for (int e = 0; e < Width; ++e) value.element[e] = scale * silu(value.element[e] + addend.element[e]);
        kernels::store<Width>(at, value);
    }
}

template <int Width>
void launch_silu_scale(float* y, const float* bias, float scale, int64_t rows, int64_t columns, cudaStream_t stream) {
    const dim3 grid(static_cast<unsigned>((columns / Width + kThreads - 1) / kThreads),
                    static_cast<unsigned>(std::min(rows, kMaxGridRows)));
    silu_scale_kernel<Width><<<grid, kThreads, 0, stream>>>(y, bias, scale, rows, columns);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// rows, in_features and out_features at least 1; y overlaps none of the others. Throws kernels::Error.
extern "C" void linear_silu_scale_launcher(float* y, const float* x, const float* weight, const float* bias,
                                           float scale, int64_t rows, int64_t in_features, int64_t out_features,
                                           int config, void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    if (config < 0 || config > 2) {
        kernels::throw_error("linear_silu_scale: config must be 0, 1 or 2, got %d", config);
    }
    kernels::Gemm gemm = kernels::packed_gemm(rows, out_features, in_features, true,
                                              config == 1 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_FAST_TF32);
    gemm.epilogue = CUBLASLT_EPILOGUE_BIAS;
    kernels::GemmOperands operands{};
    operands.a = x;
    operands.b = weight;
    operands.bias = bias;
    operands.d = y;
    operands.alpha = 1.0f;
    operands.workspace = workspace;
    operands.workspace_bytes = workspace_bytes;

    // Where the library cannot add the bias (odd shapes at some precisions) the pass does.
    const bool fused = config != 2 && kernels::run_gemm(gemm, operands, kernels::GemmSearch::kTimed, stream);
    if (!fused) {
        gemm.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
        operands.bias = nullptr;
        if (!kernels::run_gemm(gemm, operands, kernels::GemmSearch::kTimed, stream)) {
            kernels::throw_error("linear_silu_scale: cuBLASLt has no algorithm for this shape");
        }
    }
    const float* late_bias = fused ? nullptr : bias;
    if (out_features % 4 == 0 && kernels::is_aligned(y, 16) && kernels::is_aligned(late_bias, 16)) {
        launch_silu_scale<4>(y, late_bias, scale, rows, out_features, stream);
    } else {
        launch_silu_scale<1>(y, late_bias, scale, rows, out_features, stream);
    }
}
