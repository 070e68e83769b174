// Layer normalisation over the last dimension, fp32:
//
//     y[r, c] = (x[r, c] - mean[r]) / sqrt(var[r] + eps) * weight[c] + bias[c]
//     mean[r] = sum_c x[r, c] / n,   var[r] = sum_c (x[r, c] - mean[r])^2 / n        (biased, as torch.nn.LayerNorm)
//
// Bound: memory. Read x and write y once, 8 bytes an element: for 12544 x 768 that is 77.1 MB, 18 us at 4.3 TB/s. The
// arithmetic, 8 FLOPs an element, is 1/200 of what the card can do in that time.
//
// Algorithm: a row lives in registers between its one load and its one store. The mean comes first and the variance
// from the centred values: E[x^2] - mean^2 would cancel when |mean| >> deviation. How many threads share a row:
//
//     n <= 1024     one warp; both sums are warp shuffles, there is no barrier, and several rows share a block
//     n <= 8192     one block of 256 threads; sums through shared memory
//     larger        one block that passes over the row three times, the 2nd and 3rd from cache
//
// With n % 4 == 0 and aligned pointers every access is 16 bytes wide; a warp has 768 floats = 6 loads per lane in
// flight before it first waits, and 32 resident warps per SM, 96 KB, several times what hides the memory latency.
// Else accesses are 4 bytes wide, and the first two forms end at rows of 256 and of 2048.
//
//     config   rows of up to 1024
//     0        one warp per row,  8 rows per block
//     1        one warp per row,  4 rows per block
//     2        one warp per row, 16 rows per block
//     3        one block per row (as longer rows)
//
// Tried and dropped: loads of x and stores of y marked evict-first. On an H200 they gained nothing at 12544 x 768 and
// lost 4 % at 262144 x 768 (docs/measurements/default_kernels.md).
#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <initializer_list>

#include "common/check.h"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace {

using kernels::kWarpSize;
using kernels::Sum;
using kernels::Vector;

constexpr int kBlockThreads = 256;
constexpr int kMaxRowsPerBlock = 16;
constexpr int kMaxWarpRow = 1024;   // 32 floats per lane
constexpr int kMaxBlockRow = 8192;  // 32 floats per thread of 256
constexpr int64_t kMaxGrid = 2147483647;

struct Arguments {
    float* y;
    const float* x;
    const float* weight;
    const float* bias;
    int64_t rows;
    int64_t n;
    float length;  // n
    float eps;
};

// One row held by Threads threads (a warp or the whole block), at most Chunks vectors of Width floats each: vector
// number `chunk * Threads + lane` belongs to thread `lane`, so a warp touches 32 neighbouring vectors at a time.
template <int Width, int Threads, int Chunks>
__device__ __forceinline__ void normalize_row(const Arguments& args, int64_t row, int lane, float* partial) {
    const float* __restrict__ x = args.x + row * args.n;
    const float* __restrict__ row_weight = args.weight;
    const float* __restrict__ row_bias = args.bias;
    float* __restrict__ y = args.y + row * args.n;
    const int vectors = static_cast<int>(args.n) / Width;
    const auto sum_over_row = [&](float value) {
        if constexpr (Threads == kWarpSize) {
            return kernels::warp_reduce(value, Sum());
        } else {
            return kernels::block_reduce<Threads>(value, Sum(), partial);
        }
    };

    Vector<float, Width> values[Chunks];
    float sum = 0;
#pragma unroll
    for (int chunk = 0; chunk < Chunks; ++chunk) {
        const int index = chunk * Threads + lane;
        if (index < vectors) {
            values[chunk] = kernels::load<Width>(x + index * Width);
        }
    }
#pragma unroll
    for (int chunk = 0; chunk < Chunks; ++chunk) {
        if (chunk * Threads + lane < vectors) {
#pragma unroll
            for (int i = 0; i < Width; ++i) sum += values[chunk].element[i];
        }
    }
    const float mean = sum_over_row(sum) / args.length;

    float squares = 0;
#pragma unroll
    for (int chunk = 0; chunk < Chunks; ++chunk) {
        if (chunk * Threads + lane < vectors) {
#pragma unroll
            for (int i = 0; i < Width; ++i) {
                const float centred = values[chunk].element[i] - mean;
                squares += centred * centred;
            }
        }
    }
    const float scale = rsqrtf(sum_over_row(squares) / args.length + args.eps);

#pragma unroll
    for (int chunk = 0; chunk < Chunks; ++chunk) {
        const int index = chunk * Threads + lane;
        if (index < vectors) {
            const auto weight = kernels::load<Width>(row_weight + index * Width);
            const auto bias = kernels::load<Width>(row_bias + index * Width);
            Vector<float, Width> result;
#pragma unroll
            for (int i = 0; i < Width; ++i) {
                result.element[i] = (values[chunk].element[i] - mean) * scale * weight.element[i] + bias.element[i];
            }
            kernels::store<Width>(y + index * Width, result);
        }
    }
}

// blockDim = (32, rows per block): each warp takes its own row. The bound of 64 registers keeps 32 warps on an SM, 96
// KB of loads in flight; the widest rows need more registers than that.
template <int Width, int Chunks>
__global__ void __launch_bounds__(kMaxRowsPerBlock* kWarpSize, Chunks* Width <= 24 ? 2 : 1)
    layer_norm_warp_kernel(Arguments args) {
    const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
    for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < args.rows; row += step) {
        normalize_row<Width, kWarpSize, Chunks>(args, row, threadIdx.x, nullptr);
    }
}

template <int Width, int Chunks>
__global__ void __launch_bounds__(kBlockThreads) layer_norm_block_kernel(Arguments args) {
    __shared__ float partial[kBlockThreads / kWarpSize];
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        normalize_row<Width, kBlockThreads, Chunks>(args, row, threadIdx.x, partial);
    }
}

// Rows of any length: three passes, of which only the first comes from memory while a row fits the caches.
template <int Width>
__global__ void __launch_bounds__(kBlockThreads) layer_norm_long_kernel(Arguments args) {
    __shared__ float partial[kBlockThreads / kWarpSize];
    const int64_t vectors = args.n / Width;
    for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
        const float* __restrict__ x = args.x + row * args.n;
        float* __restrict__ y = args.y + row * args.n;
        float sum = 0;
        for (int64_t v = threadIdx.x; v < vectors; v += kBlockThreads) {
            const auto values = kernels::load<Width>(x + v * Width);
#pragma unroll
            for (int i = 0; i < Width; ++i) sum += values.element[i];
        }
        const float mean = kernels::block_reduce<kBlockThreads>(sum, Sum(), partial) / args.length;
        float squares = 0;
        for (int64_t v = threadIdx.x; v < vectors; v += kBlockThreads) {
            const auto values = kernels::load<Width>(x + v * Width);
#pragma unroll
            for (int i = 0; i < Width; ++i) squares += (values.element[i] - mean) * (values.element[i] - mean);
        }
        const float variance = kernels::block_reduce<kBlockThreads>(squares, Sum(), partial) / args.length;
        const float scale = rsqrtf(variance + args.eps);
        for (int64_t v = threadIdx.x; v < vectors; v += kBlockThreads) {
            auto values = kernels::load<Width>(x + v * Width);
            const auto weight = kernels::load<Width>(args.weight + v * Width);
            const auto bias = kernels::load<Width>(args.bias + v * Width);
#pragma unroll
            for (int i = 0; i < Width; ++i) {
                values.element[i] = (values.element[i] - mean) * scale * weight.element[i] + bias.element[i];
            }
            kernels::store<Width>(y + v * Width, values);
        }
    }
}

template <int Width, int Chunks>
void launch_warp_rows(const Arguments& args, int rows_per_block, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(min((args.rows + rows_per_block - 1) / rows_per_block, kMaxGrid));
    const dim3 block(kWarpSize, rows_per_block);
    layer_norm_warp_kernel<Width, Chunks><<<grid, block, 0, stream>>>(args);
}

template <int Width, int Chunks>
void launch_block_rows(const Arguments& args, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(min(args.rows, kMaxGrid));
    layer_norm_block_kernel<Width, Chunks><<<grid, kBlockThreads, 0, stream>>>(args);
}

template <int Width>
void launch_long_rows(const Arguments& args, cudaStream_t stream) {
    const auto grid = static_cast<unsigned>(min(args.rows, kMaxGrid));
    layer_norm_long_kernel<Width><<<grid, kBlockThreads, 0, stream>>>(args);
}

// The smallest compiled number of chunks that holds the row: fewer registers, more rows resident. Not more of them than
// that is worth: each is paid for in every build.
void dispatch_warp_rows(const Arguments& args, int rows_per_block, cudaStream_t stream) {
    const int64_t vectors = args.n / 4;
    if (vectors <= 2 * kWarpSize) return launch_warp_rows<4, 2>(args, rows_per_block, stream);
    if (vectors <= 6 * kWarpSize) return launch_warp_rows<4, 6>(args, rows_per_block, stream);
    return launch_warp_rows<4, 8>(args, rows_per_block, stream);
}

void dispatch_vectorized(const Arguments& args, bool warp_rows, int rows_per_block, cudaStream_t stream) {
    if (warp_rows) return dispatch_warp_rows(args, rows_per_block, stream);
    const int64_t vectors = args.n / 4;
    if (vectors <= 2 * kBlockThreads) return launch_block_rows<4, 2>(args, stream);
    if (args.n <= kMaxBlockRow) return launch_block_rows<4, 8>(args, stream);
    return launch_long_rows<4>(args, stream);
}

// Odd lengths and unaligned pointers: 4 bytes per access, and at most 8 of them per thread.
void dispatch_scalar(const Arguments& args, bool warp_rows, int rows_per_block, cudaStream_t stream) {
    if (warp_rows && args.n <= 8 * kWarpSize) return launch_warp_rows<1, 8>(args, rows_per_block, stream);
    if (args.n <= 8 * kBlockThreads) return launch_block_rows<1, 8>(args, stream);
    return launch_long_rows<1>(args, stream);
}

}  // namespace

// y, x: (rows, n); weight, bias: (n). Device pointers, contiguous, y overlapping none of the others. Throws
// kernels::Error.
extern "C" void layer_norm_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t rows,
                                    int64_t n, float eps, int config, cudaStream_t stream) {
    constexpr std::array<int, 4> kRowsPerBlock = {8, 4, 16, 0};  // by config; 0: a block per row
    if (config < 0 || config >= static_cast<int>(kRowsPerBlock.size())) {
        kernels::throw_error("layer_norm: config must be 0 to 3, got %d", config);
    }
    const int rows_per_block = kRowsPerBlock[config];
    const bool warp_rows = rows_per_block > 0 && n <= kMaxWarpRow;
    if (rows == 0 || n == 0) return;
    const Arguments args{y, x, weight, bias, rows, n, static_cast<float>(n), eps};
    bool vectorized = n % 4 == 0;
    for (const void* pointer : {static_cast<const void*>(y), static_cast<const void*>(x),
                                static_cast<const void*>(weight), static_cast<const void*>(bias)}) {
        vectorized = vectorized && kernels::is_aligned(pointer, kernels::kVectorBytes);
    }
    if (vectorized) {
        dispatch_vectorized(args, warp_rows, rows_per_block, stream);
    } else {
        dispatch_scalar(args, warp_rows, rows_per_block, stream);
    }
    CUDA_CHECK_LAUNCH();
}
