// The whole of conv_tanh_pool in one kernel, for 3 x 3 windows of 8 channels: what the convolution yields never leaves
// the registers, so that x is read once (0.27 GB) and y written once (0.13 GB), 0.1 ms of memory, and the tensor cores
// set the bound: 76 GFLOP in TF32.
//
// A convolution as products. mma.sync takes k = 8, and a pixel has 8 channels: each of the 9 taps of the window is one
// step of k, with the filters as the rows of A (16) and neighbouring pixels as the columns of B (8). There is no matrix
// of patches anywhere: the B of a tap is read from the pixels themselves, shifted by the tap.
//
// A block works on tiles of 4 x 16 pooled pixels, 16 x 64 pixels of the convolution, from 18 x 66 pixels of x in shared
// memory; while it computes one, the next is on its way (cp.async). A warp owns 32 filters, whose weights of all taps
// stay in 72 of its registers for as long as the block lives, and one of the four pooled rows. It takes 8 pixels of 4
// rows at a time, two pooled pixels:
//
//     for each of 6 rows of x and 3 shifts      one B (2 loads of 4 bytes per lane), used by up to 3 rows of the result
//         and 2 x 16 filters                    72 products, 36 loads
//     max over the rows        in registers
//     max over the columns     two of them in a lane, the other two with a neighbour
//
// Channels lie 18 x 68 floats apart, 8 banks, so that the 4 channels x 8 pixels of a load meet 32 different banks.
// tanh, scale and bias come last, for one element in 16, on the way to y.
//
// For scale < 0 the minimum is wanted: the weights change their sign, max(-v) = -min(v), and the result changes it
// back.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/check.h"
#include "common/cp_async.cuh"
#include "common/max_nan.cuh"
#include "common/mma_tf32.cuh"
#include "common/vector.cuh"

namespace fused {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 2;
constexpr int kChannels = 8;
constexpr int kWindow = 3;
constexpr int kTaps = kWindow * kWindow;
constexpr int kPool = 4;

constexpr int kPooledRows = 4;  // of a tile; a warp each
constexpr int kPooledColumns = 16;
constexpr int kRows = kPooledRows * kPool + kWindow - 1;
constexpr int kColumns = 68;  // 66 are used; whole 16 bytes are copied
constexpr int kPlane = kRows * kColumns;
constexpr int kTileFloats = kChannels * kPlane;
static_assert(kPlane % 32 == 8, "four channels must lie in banks of their own");

constexpr int kWarpFilters = 32;
constexpr int kFragments = kWarpFilters / 16;
constexpr int kFilters = 2 * kWarpFilters;                      // of a block
constexpr int kResultPitch = kPooledRows * kPooledColumns + 2;  // 2 more: lanes of a store meet different banks
constexpr int kSharedBytes = (2 * kTileFloats + kFilters * kResultPitch) * static_cast<int>(sizeof(float));

struct Problem {
    float* y;
    const float* x;
    const float* w;
    const float* conv_bias;
    const float* bias;
    float scale;
    int images, height, width, filters;
    int out_height, out_width;  // of y

    __host__ __device__ int tile_rows() const { return (out_height + kPooledRows - 1) / kPooledRows; }
    __host__ __device__ int tile_columns() const { return (out_width + kPooledColumns - 1) / kPooledColumns; }
    __host__ __device__ int64_t tiles() const { return static_cast<int64_t>(images) * tile_rows() * tile_columns(); }
};

struct Tile {
    int image, row, column;  // the first pooled row and column

    __device__ Tile(const Problem& problem, int64_t number) {
        const int per_image = problem.tile_rows() * problem.tile_columns();
        const int inside = static_cast<int>(number % per_image);
        image = static_cast<int>(number / per_image);
        row = inside / problem.tile_columns() * kPooledRows;
        column = inside % problem.tile_columns() * kPooledColumns;
    }
};

// Starts copying a tile of x; beyond the image it is zero, and only pooled pixels beyond y come of that. Wide: 16 bytes
// at a time, for widths and addresses that are multiples of 4 floats and of 16 bytes.
template <bool Wide>
__device__ __forceinline__ void start_copy(float* shared, const Problem& problem, const Tile& tile) {
    constexpr int width = Wide ? 4 : 1;
    constexpr int per_row = kColumns / width;
    const float* image = problem.x + static_cast<int64_t>(tile.image) * kChannels * problem.height * problem.width;
    for (int index = threadIdx.x; index < kChannels * kRows * per_row; index += kThreads) {
        const int column = index % per_row * width;
        const int line = index / per_row;  // channel and row
        const int from_row = tile.row * kPool + line % kRows;
        const int from_column = tile.column * kPool + column;
        const bool inside = from_row < problem.height && from_column < problem.width;
        const float* from =
            image + (static_cast<int64_t>(line / kRows) * problem.height + from_row) * problem.width + from_column;
        float* to = shared + line * kColumns + column;
        if constexpr (Wide) {
            kernels::cp_async_16_zfill(to, inside ? from : image, inside);
        } else if (inside) {
            kernels::cp_async_4(to, from);
        } else {
            *to = 0.f;
        }
    }
}

// The weights of 32 filters from `first` on, in the order that mma.sync wants them in; beyond the last filter zero.
__device__ __forceinline__ void load_weights(uint32_t (&a)[kFragments][kTaps][4], const Problem& problem, int first,
                                             float sign) {
    const int group = threadIdx.x % 32 / 4;
    const int member = threadIdx.x % 4;
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int filter = first + fragment * 16 + group + part % 2 * 8;
            const int channel = member + part / 2 * 4;
#pragma unroll
            for (int tap = 0; tap < kTaps; ++tap) {
                const bool there = filter < problem.filters;
                const float value = there ? problem.w[(filter * kChannels + channel) * kTaps + tap] : 0.f;
                a[fragment][tap][part] = kernels::to_tf32(sign * value);
            }
        }
    }
}

// Two pooled pixels of 32 filters: the 8 pixels from `pixels` on, in 4 rows. result: of this lane's filter and pixel.
__device__ __forceinline__ void convolve_and_pool(float (&result)[kFragments],
                                                  const uint32_t (&a)[kFragments][kTaps][4], const float* pixels) {
    const int group = threadIdx.x % 32 / 4;
    const int member = threadIdx.x % 4;
    const float* lane = pixels + member * kPlane + group;
    float sums[kFragments][kPool][4] = {};
#pragma unroll
    for (int row = 0; row < kPool + kWindow - 1; ++row) {
#pragma unroll
        for (int shift = 0; shift < kWindow; ++shift) {
            const uint32_t b[2] = {kernels::to_tf32(lane[row * kColumns + shift]),
                                   kernels::to_tf32(lane[4 * kPlane + row * kColumns + shift])};
#pragma unroll
            for (int above = 0; above < kWindow; ++above) {  // the row of the window
                const int out = row - above;
                if (out < 0 || out >= kPool) continue;
#pragma unroll
                for (int fragment = 0; fragment < kFragments; ++fragment) {
                    kernels::mma_tf32(sums[fragment][out], a[fragment][above * kWindow + shift], b);
                }
            }
        }
    }
#pragma unroll
    for (int fragment = 0; fragment < kFragments; ++fragment) {
        float largest[2];  // of filter `group` and of `group + 8`
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            largest[half] = sums[fragment][0][2 * half];
#pragma unroll
            for (int out = 0; out < kPool; ++out) {
                largest[half] = kernels::max_nan(largest[half], sums[fragment][out][2 * half]);
                largest[half] = kernels::max_nan(largest[half], sums[fragment][out][2 * half + 1]);
            }
        }
        // Of two neighbours the even one goes on with the first filter, the odd one with the other.
        const bool odd = member % 2;
        const float theirs = __shfl_xor_sync(0xffffffff, odd ? largest[0] : largest[1], 1);
        result[fragment] = kernels::max_nan(odd ? largest[1] : largest[0], theirs);
    }
}

// gridDim: (blocks that share the tiles, groups of 64 filters).
template <bool Wide>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) conv_tanh_pool_kernel(Problem problem) {
    extern __shared__ float4 shared_memory[];
    float* const copies = reinterpret_cast<float*>(shared_memory);
    float* const results = copies + 2 * kTileFloats;
    const int warp = threadIdx.x / 32;
    const int group = threadIdx.x % 32 / 4;
    const int member = threadIdx.x % 4;
    const int pooled_row = warp / 2;
    const int block_filter = blockIdx.y * kFilters;
    const int warp_filter = warp % 2 * kWarpFilters;
    const float sign = problem.scale < 0.f ? -1.f : 1.f;

    if (blockIdx.x < problem.tiles()) start_copy<Wide>(copies, problem, Tile(problem, blockIdx.x));
    kernels::cp_async_commit();
    uint32_t a[kFragments][kTaps][4];
    load_weights(a, problem, block_filter + warp_filter, sign);

    int current = 0;
    for (int64_t number = blockIdx.x; number < problem.tiles(); number += gridDim.x) {
        const int64_t next = number + gridDim.x;
        if (next < problem.tiles()) {
            start_copy<Wide>(copies + (1 - current) * kTileFloats, problem, Tile(problem, next));
        }
        kernels::cp_async_commit();
        kernels::cp_async_wait<1>();
        __syncthreads();

        const float* pixels = copies + current * kTileFloats + pooled_row * kPool * kColumns;
#pragma unroll 1
        for (int pair = 0; pair < kPooledColumns / 2; ++pair) {
            float result[kFragments];
            convolve_and_pool(result, a, pixels + pair * 8);
#pragma unroll
            for (int fragment = 0; fragment < kFragments; ++fragment) {
                const int filter = warp_filter + fragment * 16 + group + member % 2 * 8;
                results[filter * kResultPitch + pooled_row * kPooledColumns + pair * 2 + member / 2] = result[fragment];
            }
        }
        __syncthreads();

        const Tile tile(problem, number);
        for (int index = threadIdx.x; index < kFilters * kPooledRows * kPooledColumns; index += kThreads) {
            const int column = index % kPooledColumns;
            const int row = index / kPooledColumns % kPooledRows;
            const int filter = index / (kPooledColumns * kPooledRows);
            const int k = block_filter + filter;
            if (k >= problem.filters || tile.row + row >= problem.out_height ||
                tile.column + column >= problem.out_width) {
                continue;
            }
            const float extreme = sign * results[filter * kResultPitch + row * kPooledColumns + column];
            const int64_t line =
                (static_cast<int64_t>(tile.image) * problem.filters + k) * problem.out_height + tile.row + row;
            __stcs(problem.y + line * problem.out_width + tile.column + column,
                   problem.scale * tanhf(extreme + problem.conv_bias[k]) + problem.bias[k]);
        }
        current = 1 - current;
    }
}

template <bool Wide>
void launch(const Problem& problem, cudaStream_t stream) {
    CUDA_CHECK(
        cudaFuncSetAttribute(conv_tanh_pool_kernel<Wide>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int64_t blocks = std::min<int64_t>(problem.tiles(), kBlocksPerMultiprocessor * multiprocessors);
    const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>((problem.filters + kFilters - 1) / kFilters));
    conv_tanh_pool_kernel<Wide><<<grid, kThreads, kSharedBytes, stream>>>(problem);
    CUDA_CHECK_LAUNCH();
}

inline void run(const Problem& problem, cudaStream_t stream) {
    const bool wide = problem.width % 4 == 0 && kernels::is_aligned(problem.x, 16);
    if (wide) {
        launch<true>(problem, stream);
    } else {
        launch<false>(problem, stream);
    }
}

}  // namespace fused
