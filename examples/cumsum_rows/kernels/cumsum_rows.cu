// Inclusive cumulative sum along the rows of a matrix [rows, cols], fp32:  y[r, c] = x[r, 0] + ... + x[r, c].
//
// What bounds it. One read and one write, 8 bytes per element: 8.6 GB at 32768 x 32768, 2.0 ms at 4.3 TB/s. The adds
// are nothing beside it. What costs is a chain: each element waits for all before it.
//
// The algorithm: one block per row, tile after tile, in one pass; the chain is cut at three levels.
//   lane     4 neighbouring elements (one 16-byte load), summed in registers
//   warp     128 neighbouring elements per step: a shuffle scan of the lanes' totals, and a warp has kSteps of them
//   that do
//            not wait for each other
//   block    warps leave their totals in shared memory; after the one barrier of a tile every thread adds up the totals
//   of
//            the warps before it, and all totals into the carry for the next tile
// The loads of the next tile are started before this one is scanned, so the chain hides behind them; four blocks share
// an SM and fill each other's gaps. Totals alternate between two halves of shared memory, which saves the second
// barrier. Summation is a tree of depth log2(tile) plus one add per tile, so it is more exact than a running sum.
//
// config 0: 256 threads, tiles of 4096. config 1: 512 threads, tiles of 8192. config 2: 128 threads, tiles of 2048.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/reduce.cuh"
#include "common/scan.cuh"
#include "common/vector.cuh"

namespace {

constexpr int kSteps = 4;  // 16-byte loads in flight per thread

// Width: elements per lane and load, 4 where rows are 16-byte aligned, else 1.
template <int Threads, int Width>
__global__ void __launch_bounds__(Threads)
    cumsum_rows_kernel(float* __restrict__ output, const float* __restrict__ input, int64_t cols) {
    constexpr int kWarps = Threads / kernels::kWarpSize;
    constexpr int kStepElements = kernels::kWarpSize * Width;  // of one warp and step
    constexpr int kTile = kWarps * kSteps * kStepElements;
    using Value = kernels::Vector<float, Width>;
    __shared__ float warp_total[2][kWarps];

    const int warp = threadIdx.x / kernels::kWarpSize;
    const int lane = threadIdx.x % kernels::kWarpSize;
    // A warp owns kSteps consecutive steps of a tile; within a step, lanes are neighbours, so accesses are coalesced.
    const int first = warp * kSteps * kStepElements + lane * Width;
    input += blockIdx.x * cols + first;
    output += blockIdx.x * cols + first;
    const int64_t limit =
        cols - first;  // cols is a multiple of Width: a vector is inside the row or outside, never both

    const auto load_tile = [&](Value(&value)[kSteps], int64_t tile) {
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int64_t at = tile + step * kStepElements;
            if (at < limit) {
                value[step] = kernels::load_streaming<Width>(input + at);
            } else {
#pragma unroll
                for (int e = 0; e < Width; ++e) value[step].element[e] = 0.f;
            }
        }
    };

    Value next[kSteps];
    load_tile(next, 0);
    float carry = 0.f;  // sum of all tiles before this one, the same in every thread
    int half = 0;
    for (int64_t tile = 0; tile < cols; tile += kTile, half ^= 1) {
        Value value[kSteps];
#pragma unroll
        for (int step = 0; step < kSteps; ++step) value[step] = next[step];
        load_tile(next, tile + kTile);  // beyond the row: nothing is read

        // Lane: running sums within the vector. Warp: the sum of the lanes before this one.
        float before[kSteps];
        float total[kSteps];
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
#pragma unroll
            for (int e = 1; e < Width; ++e) value[step].element[e] += value[step].element[e - 1];
            const float lane_total = value[step].element[Width - 1];
            const float inclusive = kernels::warp_inclusive_sum(lane_total);
            before[step] = __shfl_up_sync(kernels::kFullMask, inclusive, 1);
            if (lane == 0) before[step] = 0.f;
            total[step] = __shfl_sync(kernels::kFullMask, inclusive, kernels::kWarpSize - 1);
        }
        // The warp's steps follow each other.
        float warp_sum = 0.f;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            before[step] += warp_sum;
            warp_sum += total[step];
        }
        // Block: the warps follow each other, after the tiles before.
        if (lane == 0) warp_total[half][warp] = warp_sum;
        __syncthreads();  // one barrier per tile: a half is written again only behind the next one, which its readers
                          // reach after it
        float offset = carry;
        float tile_sum = 0.f;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) {
            const float sum = warp_total[half][w];
            if (w < warp) offset += sum;
            tile_sum += sum;
        }
        carry += tile_sum;

#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            const int64_t at = tile + step * kStepElements;
            if (at < limit) {
                const float base = offset + before[step];
#pragma unroll
                for (int e = 0; e < Width; ++e) value[step].element[e] += base;
                kernels::store_streaming<Width>(output + at, value[step]);
            }
        }
    }
}

template <int Threads>
void launch(float* output, const float* input, int64_t rows, int64_t cols, cudaStream_t stream) {
    const unsigned blocks = static_cast<unsigned>(rows);
    if (cols % 4 == 0 && kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16)) {
        cumsum_rows_kernel<Threads, 4><<<blocks, Threads, 0, stream>>>(output, input, cols);
    } else {
        cumsum_rows_kernel<Threads, 1><<<blocks, Threads, 0, stream>>>(output, input, cols);
    }
    CUDA_CHECK_LAUNCH();
}

}  // namespace

extern "C" void cumsum_rows_launcher(float* output, const float* input, int64_t rows, int64_t cols, int config,
                                     cudaStream_t stream) {
    if (config == 0) {
        launch<256>(output, input, rows, cols, stream);
    } else if (config == 1) {
        launch<512>(output, input, rows, cols, stream);
    } else if (config == 2) {
        launch<128>(output, input, rows, cols, stream);
    } else {
        kernels::throw_error("cumsum_rows: config must be 0, 1 or 2, got %d", config);
    }
}
