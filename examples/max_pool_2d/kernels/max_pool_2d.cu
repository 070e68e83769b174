// Max pooling with a 4 x 4 window, stride 1 and a padding of 1 that acts as -inf, fp32:
//   y[n, c, i, j] = max of x[n, c, i - 1 .. i + 2, j - 1 .. j + 2],   output (H - 1) x (W - 1).
//
// What bounds it. One read and one write: 2.15 GB each at 32 x 64 x 512 x 512, 1.0 ms at 4.3 TB/s. Taken literally,
// each output asks for 16 inputs; caches serve most of them, but 8.6e9 loads and their index arithmetic take four times
// as long.
//
// The algorithm. A window's maximum is separable, and each direction needs two steps by doubling:
//   across   pair[j] = max(x[j], x[j + 1]),   row[j] = max(pair[j], pair[j + 2])             = max of x[j .. j + 3]
//   down     pair_i = max(row_i-1, row_i),    y_i-2  = max(pair_i-2, pair_i)                 = max of 4 rows
// One warp walks down a whole plane. A row of up to 512 columns lies across its lanes, column = 32 k + lane, so that
// loads are coalesced and neighbours are a shuffle away; the last three rows live in registers, so each input is loaded
// once. Rows of the output have an odd length (511), so they start at any multiple of 4 bytes: stores of 4 bytes,
// neighbouring lanes side by side, are the widest that are always aligned, and a warp's 128 bytes still leave as whole
// sectors. The next row is loaded before this one is worked on. 2048 planes make 2048 warps, 16 on each SM, all
// resident at once: no tail, and 2 KB x 2 rows x 2048 in flight, twice what latency x bandwidth asks for.
//
// config 0: as above for W <= 512, a plane cut into bands of rows where there are too few planes to fill the GPU
//           (a band rereads 3 rows). Else config 1.
// config 1: one thread per output, 16 loads: the plain version, any W.
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check.h"
#include "common/max_nan.cuh"
#include "common/reduce.cuh"

namespace {

using kernels::kFullMask;
using kernels::kWarpSize;
using kernels::max_nan;

constexpr int kWindow = 4;
constexpr int kPadding = 1;
constexpr int kWarpsPerBlock = 4;
constexpr int kBlocksPerMultiprocessor = 4;  // 16 warps of 128 registers per thread fill the register file
constexpr int kPlainThreads = 256;

// value[k] holds column 32 k + lane of a row. Returns the value Distance columns to the right for slot k; the slot
// after the last is -inf. All lanes must call it.
template <int Distance, int Slots>
__device__ __forceinline__ float right_neighbour(const float (&value)[Slots], int k, int lane) {
    const float wrapped = k + 1 < Slots ? value[k + 1] : -INFINITY;  // what lanes beyond the 32nd would hold
    const float offered = lane < Distance ? wrapped : value[k];
    return __shfl_sync(kFullMask, offered, (lane + Distance) % kWarpSize);
}

// Slots: columns per lane, ceil(width / 32). Grid: one warp per plane and band of `band` output rows.
template <int Slots>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarpSize, kBlocksPerMultiprocessor)
    max_pool_kernel(float* __restrict__ output, const float* __restrict__ input, int64_t planes, int height, int width,
                    int bands, int band) {
    const int lane = threadIdx.x % kWarpSize;
    const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarpSize;
    const int64_t plane = warp / bands;
    if (plane >= planes) return;
    const int out_height = height - 1;
    const int out_width = width - 1;
    const int first_out = static_cast<int>(warp % bands) * band;
    const int end_out = min(first_out + band, out_height);
    input += plane * height * width + lane;
    output += plane * out_height * out_width + lane + 1;
    const int columns = width - lane;              // inside the row from this lane's first one on
    const int out_columns = out_width - lane - 1;  // likewise

    const auto load_row = [&](float (&value)[Slots], int row) {
        const bool inside = row >= 0 && row < height;
#pragma unroll
        for (int k = 0; k < Slots; ++k) {
            value[k] = inside && k * kWarpSize < columns ? __ldcs(input + row * width + k * kWarpSize) : -INFINITY;
        }
    };

    // Window maxima across a row: across[k] starts at column 32 k + lane, which is output column 32 k + lane + 1. The
    // window of output column 0 starts in the padding; it goes to the last place, which has no output column of its own
    // (32 Slots > width - 2).
    const auto across_row = [&](float (&across)[Slots], const float (&value)[Slots]) {
        float pair[Slots];
#pragma unroll
        for (int k = 0; k < Slots; ++k) pair[k] = max_nan(value[k], right_neighbour<1>(value, k, lane));
        const float first_three = max_nan(pair[0], right_neighbour<1>(pair, 0, lane));
        const float column_0 = __shfl_sync(kFullMask, first_three, 0);
#pragma unroll
        for (int k = 0; k < Slots; ++k) across[k] = max_nan(pair[k], right_neighbour<2>(pair, k, lane));
        if (lane == kWarpSize - 1) across[Slots - 1] = column_0;
    };

    // Down: what the rows above leave behind. Input row r completes output row r - 2.
    float above[Slots];   // across, one row up
    float pair_1[Slots];  // max of the rows one and two up
    float pair_2[Slots];  // max of the rows two and three up
#pragma unroll
    for (int k = 0; k < Slots; ++k) above[k] = pair_1[k] = pair_2[k] = -INFINITY;

    float next[Slots];
    const int first_in = first_out - kPadding;
    const int last_in = end_out - 1 + kWindow - 1 - kPadding;
    load_row(next, first_in);
    for (int row = first_in; row <= last_in; ++row) {
        float across[Slots];
        {
            float value[Slots];
#pragma unroll
            for (int k = 0; k < Slots; ++k) value[k] = next[k];
            if (row < last_in) load_row(next, row + 1);
            across_row(across, value);
        }
        const int out_row = row - (kWindow - 1 - kPadding);
        float* destination = output + static_cast<int64_t>(out_row) * out_width;
#pragma unroll
        for (int k = 0; k < Slots; ++k) {
            const float pair = max_nan(above[k], across[k]);
            const float result = max_nan(pair_2[k], pair);
            above[k] = across[k];
            pair_2[k] = pair_1[k];
            pair_1[k] = pair;
            if (out_row >= first_out) {
                if (k < Slots - 1 || lane < kWarpSize - 1) {
                    if (k * kWarpSize < out_columns) __stcs(destination + k * kWarpSize, result);
                } else {
                    __stcs(destination - kWarpSize, result);
                }
            }
        }
    }
}

__global__ void __launch_bounds__(kPlainThreads)
    max_pool_plain_kernel(float* __restrict__ output, const float* __restrict__ input, int64_t outputs, int height,
                          int width) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * kPlainThreads + threadIdx.x;
    if (index >= outputs) return;
    const int out_width = width - 1;
    const int out_height = height - 1;
    const int j = static_cast<int>(index % out_width);
    const int i = static_cast<int>(index / out_width % out_height);
    input += index / out_width / out_height * height * width;
    float result = -INFINITY;
    for (int row = max(i - kPadding, 0); row < min(i - kPadding + kWindow, height); ++row) {
        for (int column = max(j - kPadding, 0); column < min(j - kPadding + kWindow, width); ++column) {
            result = max_nan(result, input[static_cast<int64_t>(row) * width + column]);
        }
    }
    output[index] = result;
}

template <int Slots>
void launch_bands(float* output, const float* input, int64_t planes, int height, int width, cudaStream_t stream) {
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int64_t resident_warps = static_cast<int64_t>(multiprocessors) * kBlocksPerMultiprocessor * kWarpsPerBlock;
    // As many bands as make the planes fill the GPU about once, but none shorter than 32 rows.
    const int most_bands = (height - 1 + 31) / 32;
    const int64_t wanted = planes < resident_warps ? resident_warps / planes : 1;
    const int bands = static_cast<int>(wanted < most_bands ? wanted : most_bands);
    const int band = (height - 1 + bands - 1) / bands;
    const int64_t blocks = (planes * bands + kWarpsPerBlock - 1) / kWarpsPerBlock;
    max_pool_kernel<Slots><<<static_cast<unsigned>(blocks), kWarpsPerBlock * kWarpSize, 0, stream>>>(
        output, input, planes, height, width, bands, band);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// height and width at least 2: the output is (height - 1) x (width - 1).
extern "C" void max_pool_2d_launcher(float* output, const float* input, int64_t planes, int height, int width,
                                     int config, cudaStream_t stream) {
    if (config < 0 || config > 1) {
        throw std::runtime_error("max_pool_2d: config must be 0 or 1, got " + std::to_string(config));
    }
    if (config == 0 && width <= 128) {
        launch_bands<4>(output, input, planes, height, width, stream);
    } else if (config == 0 && width <= 256) {
        launch_bands<8>(output, input, planes, height, width, stream);
    } else if (config == 0 && width <= 512) {
        launch_bands<16>(output, input, planes, height, width, stream);
    } else {
        const int64_t outputs = planes * (height - 1) * (width - 1);
        const auto blocks = static_cast<unsigned>((outputs + kPlainThreads - 1) / kPlainThreads);
        max_pool_plain_kernel<<<blocks, kPlainThreads, 0, stream>>>(output, input, outputs, height, width);
        CUDA_CHECK_LAUNCH();
    }
}
