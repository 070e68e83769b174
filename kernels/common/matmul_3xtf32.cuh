// fp32-class matrix products on TF32 tensor cores.
//
// Each operand is split into a part that TF32 represents exactly and what is left, itself rounded to TF32:
//   x = big + small,   big = tf32(x),   small = tf32(x - big),   |x - big - small| <= 2^-22 |x|
// and A B = big_A big_B + (small_A big_B + big_A small_B) + small_A small_B, of which the last term, 2^-22 of the
// first, is left out. Three TF32 products: a third of the TF32 rate, still more than twice the rate of the fp32 units.
// The two small products are one product of twice the length, [small_A | big_A] [big_B ; small_B]; it comes first, so
// that small terms are added among themselves, and is the C operand of the big one.
//
// The tensor core's own accumulator drops bits at each step (it aligns and truncates instead of rounding), which over a
// long k shows against true fp32. Hence the big product can be cut into pieces of k: each piece starts a fresh
// accumulator and is added to the pieces before it in correctly rounded fp32.
//
// Infinities and values within 2^-11 of the largest float become NaN, as infinity minus infinity.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cublaslt.h"
#include "mma_tf32.cuh"
#include "vector.cuh"

namespace kernels {

constexpr int kSplitTf32Threads = 256;

// big and small: places for the parts of input[0], with input's columns and a row stride of `stride`. Width divides
// columns and stride.
template <int Width>
__global__ void __launch_bounds__(kSplitTf32Threads)
    split_tf32_kernel(float* __restrict__ big, float* __restrict__ small, const float* __restrict__ input, int64_t rows,
                      int64_t columns, int64_t stride) {
    for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
        const int64_t column = (static_cast<int64_t>(blockIdx.x) * kSplitTf32Threads + threadIdx.x) * Width;
        if (column >= columns) return;
        const Vector<float, Width> value = load_streaming<Width>(input + row * columns + column);
        Vector<float, Width> high;
        Vector<float, Width> low;
#pragma unroll
        for (int e = 0; e < Width; ++e) {
            high.element[e] = __uint_as_float(to_tf32(value.element[e]));
            low.element[e] = __uint_as_float(to_tf32(value.element[e] - high.element[e]));
        }
        store<Width>(big + row * stride + column, high);
        store<Width>(small + row * stride + column, low);
    }
}

inline void split_tf32(float* big, float* small, const float* input, int64_t rows, int64_t columns, int64_t stride,
                       cudaStream_t stream) {
    constexpr int64_t kMaxGridRows = 65535;
    const auto grid_rows = static_cast<unsigned>(rows < kMaxGridRows ? rows : kMaxGridRows);
    const bool vectors =
        columns % 4 == 0 && stride % 4 == 0 && is_aligned(big, 16) && is_aligned(small, 16) && is_aligned(input, 16);
    const int width = vectors ? 4 : 1;
    const dim3 grid(static_cast<unsigned>((columns / width + kSplitTf32Threads - 1) / kSplitTf32Threads), grid_rows);
    if (vectors) {
        split_tf32_kernel<4><<<grid, kSplitTf32Threads, 0, stream>>>(big, small, input, rows, columns, stride);
    } else {
        split_tf32_kernel<1><<<grid, kSplitTf32Threads, 0, stream>>>(big, small, input, rows, columns, stride);
    }
    CUDA_CHECK_LAUNCH();
}

// Bytes of scratch memory that matmul_3xtf32 needs beside the library's own workspace.
inline int64_t matmul_3xtf32_bytes(int64_t m, int64_t n, int64_t k) {
    return static_cast<int64_t>(sizeof(float)) * (2 * m * k + 2 * k * n + m * n);
}

// out (m, n) = a (m, k) b (k, n), row-major. `pieces`: how many pieces of k the big product is summed in, a divisor of
// k. `scratch`: matmul_3xtf32_bytes, 16-byte aligned. `workspace`: the library's.
inline void matmul_3xtf32(float* out, const float* a, const float* b, int64_t m, int64_t n, int64_t k, int pieces,
                          float* scratch, void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    float* a_parts = scratch;              // (m, 2k): small | big
    float* b_parts = a_parts + 2 * m * k;  // (2k, n): big over small
    float* sum = b_parts + 2 * k * n;      // (m, n)
    split_tf32(a_parts + k, a_parts, a, m, k, 2 * k, stream);
    split_tf32(b_parts, b_parts + k * n, b, k, n, n, stream);

    Gemm gemm = packed_gemm(m, n, 2 * k, false, CUBLAS_COMPUTE_32F_FAST_TF32);
    GemmOperands operands{};
    operands.alpha = 1.0f;
    operands.workspace = workspace;
    operands.workspace_bytes = workspace_bytes;
    const auto run = [&] {
        if (!run_gemm(gemm, operands, GemmSearch::kTimed, stream)) {
            throw_error("matmul: cuBLASLt has no TF32 algorithm for this shape");
        }
    };

    // Each product reads the sum so far from one buffer and writes to the other (D must not overlap C while algorithms
    // are timed); the last lands in `out`.
    float* const buffers[2] = {pieces % 2 == 0 ? out : sum, pieces % 2 == 0 ? sum : out};
    operands.a = a_parts;
    operands.b = b_parts;
    operands.d = buffers[0];
    run();
    gemm.k = k / pieces;
    operands.beta = 1.0f;
    for (int piece = 0; piece < pieces; ++piece) {
        operands.a = a_parts + k + piece * gemm.k;
        operands.b = b_parts + piece * gemm.k * n;
        operands.c = buffers[piece % 2];
        operands.d = buffers[(piece + 1) % 2];
        run();
    }
}

}  // namespace kernels
