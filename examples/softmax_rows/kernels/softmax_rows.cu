// Softmax along the rows of a matrix [rows, cols], fp32:  y[r, c] = exp(x[r, c] - M) / S,
// M = max over c of x[r, c], S = sum over c of exp(x[r, c] - M).
//
// What bounds it. 8 bytes per element must move (one read, one write); at 4096 x 393216 that is 12.9 GB, 3.0 ms at a
// copy rate of 4.3 TB/s. The arithmetic is one exp per element: 1.6e9 at 16 per clock and SM is 0.45 ms, hidden if it
// overlaps the copies.
//
// Why it is usually slower. M and S are known only after the whole row was read. A row of 1.57 MB fits neither the
// registers nor the shared memory of one SM, so one block per row reads it twice: 1.5x the bytes. L2 does not help: the
// rows in flight (one per SM) are 200 MB.
//
// The algorithm. A row is spread over a cluster of 8 blocks, one per SM, 49152 elements (192 KB) each:
//   shared memory   receives the NEXT row by cp.async, 192 KB
//   registers       hold THIS row, 96 floats in each of 512 threads, 192 KB
// A thread copies into shared memory exactly the elements it will take out again, so that hand-over needs no barrier:
// wait for its own copies, move them to registers, and at once start the copies of the next row into the same places.
// While those are in flight the block finds its maximum, replaces x by exp(x - block maximum), sums, exchanges
// (maximum, sum) with the 7 other blocks through distributed shared memory, rescales and stores. The memory system
// always has work: 192 KB per SM are in flight, where the latency asks for about 30.
// Clusters are persistent (as many as fit at once) and take rows round-robin.
//
// config 0: the cluster kernel for rows it fits (cols a multiple of 4, 98304 < cols <= 393216, 16-byte aligned),
// else 1. config 1: one block per row, online softmax, then a second read. It is the plain version, handles every
// shape, and is
//           as good for short rows, whose second read hits L2 or L1.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/cluster.cuh"
#include "common/cp_async.cuh"
#include "common/online_softmax.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace {

using kernels::SoftmaxState;

constexpr int kClusterBlocks = 8;     // the largest portable cluster
constexpr int kClusterThreads = 512;  // x 128 registers = the whole register file
constexpr int kTwoReadThreads = 1024;
constexpr int kFloatsPerVector = 4;

// Exponentials are wanted twice, for the sum and for the result. Left to itself the compiler computes them twice too.
__device__ __forceinline__ float exp2_once(float x) {
    float result = kernels::exp2_flushed(x);
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+f"(result));
#endif
    return result;
}

// Vectors: float4's of a row that each thread owns. 24 is what fits: 24 * 512 * 16 bytes = 192 KB of shared memory.
// Full: the row fills every one of them, so nothing needs a bounds check; with 24 of those registers spill.
template <int Vectors, bool Full>
__global__ void __launch_bounds__(kClusterThreads, 1)
    softmax_cluster_kernel(float4* __restrict__ output, const float4* __restrict__ input, int64_t rows,
                           int row_vectors) {
    extern __shared__ float4 next_row[];  // [Vectors][kClusterThreads]
    __shared__ float partial_max[kClusterThreads / kernels::kWarpSize];
    __shared__ float partial_sum[kClusterThreads / kernels::kWarpSize];
    __shared__ float2
        exchange[2][kClusterBlocks];  // (maximum, sum) of each block; rows alternate between the two halves

    const int thread = threadIdx.x;
    const int rank = static_cast<int>(kernels::cluster_rank());
    const int64_t cluster = blockIdx.x / kClusterBlocks;
    const int64_t clusters = gridDim.x / kClusterBlocks;

    // This block's part of every row: vectors [begin, begin + owned).
    const int share = (row_vectors + kClusterBlocks - 1) / kClusterBlocks;
    const int begin = rank * share;
    const int owned = max(0, min(share, row_vectors - begin));
    const int mine = (owned - thread + kClusterThreads - 1) / kClusterThreads;  // vectors of this thread; <= 0 if none

    const auto start_copies = [&](int64_t row) {
        const float4* source = input + row * row_vectors + begin + thread;
#pragma unroll
        for (int i = 0; i < Vectors; ++i) {
            const int offset = i * kClusterThreads;
            if (Full || i < mine) kernels::cp_async_16(next_row + thread + offset, source + offset);
        }
        kernels::cp_async_commit();
    };

    if (cluster < rows) start_copies(cluster);
    kernels::cluster_sync();  // every block of the cluster runs: its shared memory may be written to

    int half = 0;
    for (int64_t row = cluster; row < rows; row += clusters, half ^= 1) {
        // Shared memory -> registers, then refill it.
        float4 value[Vectors];
        kernels::cp_async_wait<0>();
#pragma unroll
        for (int i = 0; i < Vectors; ++i) {
            const int offset = i * kClusterThreads;
            value[i] =
                Full || i < mine ? next_row[thread + offset] : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
        }
        float max = -INFINITY;
#pragma unroll
        for (int i = 0; i < Vectors; ++i) {
            max = fmaxf(max, fmaxf(fmaxf(value[i].x, value[i].y), fmaxf(value[i].z, value[i].w)));
        }
        // A NaN is lost by fmaxf but comes back through the sum.
        max = kernels::block_reduce<kClusterThreads>(max, [](float a, float b) { return fmaxf(a, b); }, partial_max);
        // The maximum depended on every value, so shared memory has been read and may be overwritten.
        if (row + clusters < rows) start_copies(row + clusters);

        // Exponentials against the block's maximum, and their sum.
        const float shift = max == -INFINITY ? 0.f : max * kernels::kLog2E;
        float sum = 0.f;
#pragma unroll
        for (int i = 0; i < Vectors; ++i) {
            value[i].x = exp2_once(fmaf(value[i].x, kernels::kLog2E, -shift));
            value[i].y = exp2_once(fmaf(value[i].y, kernels::kLog2E, -shift));
            value[i].z = exp2_once(fmaf(value[i].z, kernels::kLog2E, -shift));
            value[i].w = exp2_once(fmaf(value[i].w, kernels::kLog2E, -shift));
            sum += (value[i].x + value[i].y) + (value[i].z + value[i].w);
        }
        sum = kernels::block_reduce<kClusterThreads>(sum, kernels::Sum{}, partial_sum);

        // Cluster: thread i tells block i. The next writer of this half comes two rows later, behind the next barrier,
        // at which every reader of this row has arrived.
        if (thread < kClusterBlocks) kernels::store_cluster(&exchange[half][rank], thread, make_float2(max, sum));
        kernels::cluster_sync();
        SoftmaxState total;
#pragma unroll
        for (int i = 0; i < kClusterBlocks; ++i) {
            total = kernels::merge(total, SoftmaxState{exchange[half][i].x, exchange[half][i].y});
        }
        const float scale = kernels::exp_below(max, total.max) / total.sum;

        float4* destination = output + row * row_vectors + begin + thread;
#pragma unroll
        for (int i = 0; i < Vectors; ++i) {
            const int offset = i * kClusterThreads;
            if (Full || i < mine) {
                __stcs(destination + offset,
                       make_float4(value[i].x * scale, value[i].y * scale, value[i].z * scale, value[i].w * scale));
            }
        }
    }
}

template <int Vectors, bool Full>
void launch_cluster(float* output, const float* input, int64_t rows, int cols, cudaStream_t stream) {
    const auto kernel = softmax_cluster_kernel<Vectors, Full>;
    const size_t shared_bytes = sizeof(float4) * Vectors * kClusterThreads;
    CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
    // Asked on each launch rather than remembered, so that a second device gets its own answer; it costs microseconds.
    const int resident = kernels::max_active_clusters(kernel, kClusterBlocks, kClusterThreads, shared_bytes);
    if (resident == 0) kernels::throw_error("softmax_rows: no cluster of 8 SMs is to be had here; use config=1");
    const int64_t clusters = rows < resident ? rows : resident;

    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = kClusterBlocks;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(static_cast<unsigned>(clusters) * kClusterBlocks);
    launch.blockDim = dim3(kClusterThreads);
    launch.dynamicSmemBytes = shared_bytes;
    launch.stream = stream;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    CUDA_CHECK(cudaLaunchKernelEx(&launch, kernel, reinterpret_cast<float4*>(output),
                                  reinterpret_cast<const float4*>(input), rows, cols / kFloatsPerVector));
}

// One block per row. Width: floats per load (4 where rows allow it, else 1).
template <int Width>
__global__ void __launch_bounds__(kTwoReadThreads)
    softmax_two_read_kernel(float* __restrict__ output, const float* __restrict__ input, int64_t cols) {
    __shared__ float partial_max[kTwoReadThreads / kernels::kWarpSize];
    __shared__ float partial_sum[kTwoReadThreads / kernels::kWarpSize];
    input += blockIdx.x * cols;
    output += blockIdx.x * cols;
    const int64_t vectors = cols / Width;

    SoftmaxState mine;
    for (int64_t i = threadIdx.x; i < vectors; i += kTwoReadThreads) {
        const auto value = kernels::load<Width>(input + i * Width);
        float max = mine.max;
#pragma unroll
        for (int e = 0; e < Width; ++e) max = fmaxf(max, value.element[e]);
        float sum = mine.sum * kernels::exp_below(mine.max, max);
#pragma unroll
        for (int e = 0; e < Width; ++e) sum += kernels::exp_below(value.element[e], max);
        mine = {max, sum};
    }
    const float max =
        kernels::block_reduce<kTwoReadThreads>(mine.max, [](float a, float b) { return fmaxf(a, b); }, partial_max);
    const float sum = kernels::block_reduce<kTwoReadThreads>(mine.sum * kernels::exp_below(mine.max, max),
                                                             kernels::Sum{}, partial_sum);
    const float scale = 1.f / sum;
    for (int64_t i = threadIdx.x; i < vectors; i += kTwoReadThreads) {
        auto value = kernels::load<Width>(input + i * Width);
#pragma unroll
        for (int e = 0; e < Width; ++e) value.element[e] = kernels::exp_below(value.element[e], max) * scale;
        kernels::store_streaming<Width>(output + i * Width, value);
    }
}

}  // namespace

extern "C" void softmax_rows_launcher(float* output, const float* input, int64_t rows, int64_t cols, int config,
                                      cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("softmax_rows: config must be 0 or 1, got %d", config);
    }
    constexpr int64_t kColsPerVector = static_cast<int64_t>(kFloatsPerVector) * kClusterThreads * kClusterBlocks;
    const bool vectors =
        cols % kFloatsPerVector == 0 && kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16);
    const bool cluster = config == 0 && vectors && cols > 6 * kColsPerVector;
    if (cluster && cols <= 12 * kColsPerVector) {
        launch_cluster<12, false>(output, input, rows, static_cast<int>(cols), stream);
    } else if (cluster && cols <= 20 * kColsPerVector) {
        launch_cluster<20, false>(output, input, rows, static_cast<int>(cols), stream);
    } else if (cluster && cols == 24 * kColsPerVector) {
        launch_cluster<24, true>(output, input, rows, static_cast<int>(cols), stream);
    } else if (vectors) {
        softmax_two_read_kernel<4><<<static_cast<unsigned>(rows), kTwoReadThreads, 0, stream>>>(output, input, cols);
        CUDA_CHECK_LAUNCH();
    } else {
        softmax_two_read_kernel<1><<<static_cast<unsigned>(rows), kTwoReadThreads, 0, stream>>>(output, input, cols);
        CUDA_CHECK_LAUNCH();
    }
}
