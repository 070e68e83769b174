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
// One warp walks down a whole plane. A row of up to 512 columns lies across its lanes, column = 32 k + lane; neighbours
// are a shuffle away, and what the last three rows leave behind stays in registers, so each input is loaded once.
//   in    Rows of the input arrive by cp.async in a ring in shared memory, two rows (4 KB) ahead of the warp: 2048
//         planes make 2048 warps, 16 on each SM, all resident at once, no tail, and 64 KB in flight per SM where
//         latency x bandwidth asks for 33 KB.
//   out   Rows of the output have an odd length (511), so they start at any multiple of 4 bytes. But they lie side by
//         side: the rows of a plane are one stream, which passes through shared memory and leaves in whole aligned
//         lines of 128 bytes, 16 bytes per lane. What does not fill a line waits for the next row.
//
// Tried, on an H200: 3.78 TB/s as it is, and 3.77 with four rows ahead, so two are enough. Stores of 4 bytes straight
// from registers, of which each 128 bytes touch five sectors of 32: 3.70. The next row in registers instead of shared
// memory, at most 32 KB in flight: 3.5. One thread per output: 0.77.
//
// config 0: as above for W <= 512, a plane cut into bands of rows where there are too few planes to fill the GPU
//           (a band rereads 3 rows). Else config 1.
// config 1: one thread per output, 16 loads: the plain version, any W.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/cp_async.cuh"
#include "common/max_nan.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace {

using kernels::kFullMask;
using kernels::kWarpSize;
using kernels::max_nan;

constexpr int kWindow = 4;
constexpr int kPadding = 1;
constexpr int kRows = 3;  // of input in shared memory for each warp: one worked on, the others arriving
constexpr int kWarpsPerBlock = 4;
constexpr int kBlocksPerMultiprocessor = 4;  // 16 warps of 128 registers per thread fill the register file
constexpr int kLineFloats = 32;              // 128 bytes, what L2 and memory like best
constexpr int kMaxSlots = 16;                // columns per lane
constexpr int kPlainThreads = 256;

// value[k] holds column 32 k + lane of a row. Returns the value Distance columns to the right for slot k; the slot
// after the last is -inf. All lanes must call it.
template <int Distance, int Slots>
__device__ __forceinline__ float right_neighbour(const float (&value)[Slots], int k, int lane) {
    const float wrapped = k + 1 < Slots ? value[k + 1] : -INFINITY;  // what lanes beyond the 32nd would hold
    const float offered = lane < Distance ? wrapped : value[k];
    return __shfl_sync(kFullMask, offered, (lane + Distance) % kWarpSize);
}

// The rows of one plane on their way into one warp: a ring of kRows rows in shared memory. Columns and rows outside the
// plane are -inf.
template <int Slots>
class RowRing {
  public:
    static constexpr int kFloats = kRows * Slots * kWarpSize;

    __device__ __forceinline__ RowRing(float* memory, const float* plane, int height, int width, bool wide, int lane)
        : memory_(memory), plane_(plane), height_(height), width_(width), lane_(lane), wide_(wide) {
        for (int i = lane; i < kFloats; i += kWarpSize) {
            if (i % (Slots * kWarpSize) >= width) memory[i] = -INFINITY;
        }
    }

    // Starts the copy of a row into the place of the row kRows before it.
    __device__ __forceinline__ void fill(int row) {
        float* place = memory_ + next_ * (Slots * kWarpSize);
        next_ = next_ + 1 == kRows ? 0 : next_ + 1;
        if (row < 0 || row >= height_) {
#pragma unroll
            for (int k = 0; k < Slots; ++k) place[k * kWarpSize + lane_] = -INFINITY;
        } else if (wide_) {
            const float* source = plane_ + static_cast<int64_t>(row) * width_;
#pragma unroll
            for (int k = 0; k < Slots; k += 4) {
                const int column = k * kWarpSize + 4 * lane_;
                if (column < width_) kernels::cp_async_16(place + column, source + column);
            }
        } else {
            const float* source = plane_ + static_cast<int64_t>(row) * width_;
#pragma unroll
            for (int k = 0; k < Slots; ++k) {
                const int column = k * kWarpSize + lane_;
                if (column < width_) kernels::cp_async_4(place + column, source + column);
            }
        }
        kernels::cp_async_commit();
    }

    // value[k]: column 32 k + lane of the oldest row.
    __device__ __forceinline__ void take(float (&value)[Slots]) {
        const float* place = memory_ + oldest_ * (Slots * kWarpSize) + lane_;
        oldest_ = oldest_ + 1 == kRows ? 0 : oldest_ + 1;
#pragma unroll
        for (int k = 0; k < Slots; ++k) value[k] = place[k * kWarpSize];
    }

  private:
    float* memory_;
    const float* plane_;
    int height_;
    int width_;
    int lane_;
    int next_ = 0;
    int oldest_ = 0;
    bool wide_;  // rows start on 16 bytes
};

// Where rows, which follow each other in memory, leave as one stream of whole lines.
template <int Slots>
class LineStores {
  public:
    // A row and what the one before left over; what lies behind a row shorter than 32 Slots is never read.
    static constexpr int kFloats = Slots * kWarpSize + kLineFloats;

    __device__ __forceinline__ LineStores(float* memory, float* output, int out_width, int lane)
        : memory_(memory), out_width_(out_width), lane_(lane) {
        kept_ = static_cast<int>(reinterpret_cast<uintptr_t>(output) / sizeof(float) % kLineFloats);
        line_ = output - kept_;
        foreign_ = kept_;
    }

    __device__ __forceinline__ void put(const float (&result)[Slots]) {
        // The lanes have read what they wanted of the row before: the caller's __syncwarp.
        if (lane_ < kept_) memory_[lane_] = left_over_;
        float* row = memory_ + kept_;
#pragma unroll
        for (int k = 0; k < Slots - 1; ++k) row[k * kWarpSize + lane_ + 1] = result[k];
        row[lane_ == kWarpSize - 1 ? 0 : (Slots - 1) * kWarpSize + lane_ + 1] = result[Slots - 1];
        __syncwarp();
        const int have = kept_ + out_width_;
        const int whole = have / kLineFloats * kLineFloats;
        store_vectors(whole);
        line_ += whole;
        kept_ = have - whole;
        if (lane_ < kept_) left_over_ = memory_[whole + lane_];
        if (whole > 0) foreign_ = 0;
    }

    // Stores what did not fill a line.
    __device__ __forceinline__ void finish() {
        if (lane_ >= foreign_ && lane_ < kept_) __stcs(line_ + lane_, left_over_);
    }

  private:
    // The first `floats`, a multiple of the line. A first line that begins with another warp's values goes singly.
    __device__ __forceinline__ void store_vectors(int floats) {
        if (foreign_ > 0) {
            if (floats > 0 && lane_ >= foreign_) __stcs(line_ + lane_, memory_[lane_]);
        }
        const int first = foreign_ > 0 ? kLineFloats : 0;
#pragma unroll
        for (int k = 0; k <= Slots / 4; ++k) {
            const int place = 4 * (k * kWarpSize + lane_);
            if (place >= first && place < floats) {
                __stcs(reinterpret_cast<float4*>(line_ + place), *reinterpret_cast<const float4*>(memory_ + place));
            }
        }
    }

    float* memory_;
    float* line_;            // an aligned line; the memory's first float belongs at its start
    float left_over_ = 0.f;  // float number `lane` of the line begun
    int kept_;               // how many of it there are
    int foreign_;            // how many of the line's first floats are not this warp's
    int out_width_;
    int lane_;
};

template <int Slots>
constexpr int kWarpFloats = RowRing<Slots>::kFloats + LineStores<Slots>::kFloats;

// Window maxima across a row: across[k] starts at column 32 k + lane, which is output column 32 k + lane + 1. The
// window of output column 0 starts in the padding; it goes to the last place, which has no output column of its own
// (32 Slots > width - 2).
template <int Slots>
__device__ __forceinline__ void across_row(float (&across)[Slots], const float (&value)[Slots], int lane) {
    float pair[Slots];
#pragma unroll
    for (int k = 0; k < Slots; ++k) pair[k] = max_nan(value[k], right_neighbour<1>(value, k, lane));
    const float first_three = max_nan(pair[0], right_neighbour<1>(pair, 0, lane));
    const float column_0 = __shfl_sync(kFullMask, first_three, 0);
#pragma unroll
    for (int k = 0; k < Slots; ++k) across[k] = max_nan(pair[k], right_neighbour<2>(pair, k, lane));
    if (lane == kWarpSize - 1) across[Slots - 1] = column_0;
}

// Slots: columns per lane, ceil(width / 32), a multiple of 4. Grid: one warp per plane and band of `band` output rows.
template <int Slots>
__global__ void __launch_bounds__(kWarpsPerBlock* kWarpSize, kBlocksPerMultiprocessor)
    max_pool_kernel(float* __restrict__ output, const float* __restrict__ input, int64_t planes, int height, int width,
                    int bands, int band, bool wide) {
    extern __shared__ float4 memory[];
    const int lane = threadIdx.x % kWarpSize;
    const int64_t warp = static_cast<int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarpSize;
    const int64_t plane = warp / bands;
    if (plane >= planes) return;
    const int out_height = height - 1;
    const int out_width = width - 1;
    const int first_out = static_cast<int>(warp % bands) * band;
    const int end_out = min(first_out + band, out_height);
    if (first_out >= end_out) return;
    float* warp_memory = reinterpret_cast<float*>(memory) + threadIdx.x / kWarpSize * kWarpFloats<Slots>;
    RowRing<Slots> rows(warp_memory, input + plane * height * width, height, width, wide, lane);
    LineStores<Slots> stores(warp_memory + RowRing<Slots>::kFloats,
                             output + (plane * out_height + first_out) * out_width, out_width, lane);

    // Down: what the rows above leave behind. Input row r completes output row r - 2.
    float above[Slots];   // across, one row up
    float pair_1[Slots];  // max of the rows one and two up
    float pair_2[Slots];  // max of the rows two and three up
#pragma unroll
    for (int k = 0; k < Slots; ++k) above[k] = pair_1[k] = pair_2[k] = -INFINITY;

    const int first_in = first_out - kPadding;
    const int last_in = end_out - 1 + kWindow - 1 - kPadding;
#pragma unroll
    for (int i = 0; i < kRows - 1; ++i) rows.fill(first_in + i);
    for (int row = first_in; row <= last_in; ++row) {
        kernels::cp_async_wait<kRows - 2>();
        __syncwarp();  // the row is here for all lanes, and all have left the one before
        rows.fill(row + kRows - 1);
        float value[Slots];
        float across[Slots];
        rows.take(value);
        across_row(across, value, lane);
        float result[Slots];
#pragma unroll
        for (int k = 0; k < Slots; ++k) {
            const float pair = max_nan(above[k], across[k]);
            result[k] = max_nan(pair_2[k], pair);
            above[k] = across[k];
            pair_2[k] = pair_1[k];
            pair_1[k] = pair;
        }
        if (row - (kWindow - 1 - kPadding) >= first_out) stores.put(result);
    }
    stores.finish();
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
    const bool wide = width % 4 == 0 && kernels::is_aligned(input, 16);
    constexpr int kSharedBytes = kWarpsPerBlock * kWarpFloats<Slots> * static_cast<int>(sizeof(float));
    auto* kernel = max_pool_kernel<Slots>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    kernel<<<static_cast<unsigned>(blocks), kWarpsPerBlock * kWarpSize, kSharedBytes, stream>>>(
        output, input, planes, height, width, bands, band, wide);
    CUDA_CHECK_LAUNCH();
}

void launch_width(float* output, const float* input, int64_t planes, int height, int width, cudaStream_t stream) {
    const auto launch = width <= 128 ? launch_bands<4> : width <= 256 ? launch_bands<8> : launch_bands<16>;
    launch(output, input, planes, height, width, stream);
}

}  // namespace

// height and width at least 2: the output is (height - 1) x (width - 1).
extern "C" void max_pool_2d_launcher(float* output, const float* input, int64_t planes, int height, int width,
                                     int config, cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("max_pool_2d: config must be 0 or 1, got %d", config);
    }
    if (config == 0 && width <= kMaxSlots * kWarpSize) {
        launch_width(output, input, planes, height, width, stream);
    } else {
        const int64_t outputs = planes * (height - 1) * (width - 1);
        const auto blocks = static_cast<unsigned>((outputs + kPlainThreads - 1) / kPlainThreads);
        max_pool_plain_kernel<<<blocks, kPlainThreads, 0, stream>>>(output, input, outputs, height, width);
        CUDA_CHECK_LAUNCH();
    }
}
