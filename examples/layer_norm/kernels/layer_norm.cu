// Layer normalisation of long rows with a full-size affine map, fp32, rows [rows, length]:
//   y[r, i] = (x[r, i] - mean_r) / sqrt(var_r + epsilon) * weight[i] + bias[i],   var biased (divided by length).
//
// What bounds it. At 16 rows of 4,194,304 elements: x 268 MB read, y 268 MB written, weight and bias 16.8 MB each read
// once: 570 MB, 0.133 ms at 4.3 TB/s. But mean and variance of a row of 16.8 MB are known only after all of it was
// read, and weight and bias are wanted again by each of the 16 rows: done naively that is 268 MB more of x and 500 MB
// more of weight and bias, from DRAM or (where it fits) from L2, whose bandwidth is not much more than DRAM's.
//
// The algorithm: the chip is big enough to hold a whole row, 128 SMs x 128 KB. Block b owns the same 32768 columns of
// every row for the whole kernel (kernels/common/team.cuh):
//   shared memory   ring of 224 KB: this row's slice, and three quarters of the next one's already arriving
//   registers       the slice's weights, 64 floats in each of 512 threads, loaded once
//   L2              the slice's biases (16.8 MB in all, marked evict-last while x and y are marked evict-first)
// Per row: wait for the slice, take its moments from shared memory, post them, wait for the other 127 blocks,
// normalise, store; each 16 bytes taken from the ring are refilled at once with the slice after next. x is read once, y
// written once.
//
// config 0: teams where the row length is 32768 x (a team of 32 or more SMs), else 1.
// config 1: two kernels, moments (split over blocks, merged exactly) and normalise. It reads x twice, handles every
// shape.
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "common/check.h"
#include "common/team.cuh"
#include "common/two_read_norm.cuh"
#include "common/vector.cuh"

namespace {

using kernels::kChunkVectors;
using kernels::kRingChunks;
using kernels::kSliceChunks;
using kernels::Moments;

constexpr int kMinTeamBlocks = 32;

__device__ __forceinline__ float4 normalise(float4 x, float mean, float inverse_deviation, float4 weight, float4 bias) {
    return make_float4(fmaf((x.x - mean) * inverse_deviation, weight.x, bias.x),
                       fmaf((x.y - mean) * inverse_deviation, weight.y, bias.y),
                       fmaf((x.z - mean) * inverse_deviation, weight.z, bias.z),
                       fmaf((x.w - mean) * inverse_deviation, weight.w, bias.w));
}

__global__ void __launch_bounds__(kernels::kTeamThreads, 1)
    layer_norm_team_kernel(float4* __restrict__ output, const float4* __restrict__ input,
                           const float4* __restrict__ weight, const float4* __restrict__ bias, int rows,
                           int team_blocks, float epsilon, kernels::TeamBoard* board) {
    extern __shared__ float4 ring_memory[];
    __shared__ Moments partial[kernels::kTeamThreads / kernels::kWarpSize];
    __shared__ float2 statistics;  // (mean, inverse deviation) of the current row
    constexpr int kBatch = 2;      // chunks normalised together; bias is loaded one batch ahead

    const int team = blockIdx.x / team_blocks;
    const int teams = gridDim.x / team_blocks;
    const int turns = (rows - team + teams - 1) / teams;  // rows of this team: team, team + teams, ...
    const int64_t row_vectors = static_cast<int64_t>(team_blocks) * kernels::kSliceVectors;
    const int64_t mine = (blockIdx.x % team_blocks) * static_cast<int64_t>(kernels::kSliceVectors) + threadIdx.x;

    const auto source = [&](int turn, int chunk) -> const float4* {
        if (turn >= turns) return nullptr;
        return input + (team + static_cast<int64_t>(turn) * teams) * row_vectors + mine + chunk * kChunkVectors;
    };

    kernels::SliceRing ring(ring_memory, kernels::evict_first_policy());
#pragma unroll
    for (int i = 0; i < kRingChunks; ++i) ring.refill(source(i / kSliceChunks, i % kSliceChunks));

    float4 weights[kSliceChunks];
#pragma unroll
    for (int chunk = 0; chunk < kSliceChunks; ++chunk) weights[chunk] = __ldcs(weight + mine + chunk * kChunkVectors);
    bias += mine;
    const unsigned long long keep = kernels::evict_last_policy();

    for (int turn = 0; turn < turns; ++turn) {
        ring.wait_slice();
        Moments m = kernels::slice_moments(ring, partial);
        float4 next_bias[kBatch];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) next_bias[i] = kernels::load_with_policy(bias + i * kChunkVectors, keep);
        if (threadIdx.x < kernels::kWarpSize) {
            kernels::post_moments(board, team, turn, m);
            m = kernels::await_moments(board, team, team_blocks, turn);
            if (threadIdx.x == 0) statistics = make_float2(m.mean, rsqrtf(m.deviation / m.count + epsilon));
        }
        __syncthreads();
        const float mean = statistics.x;
        const float inverse_deviation = statistics.y;

        float4* destination = output + (team + static_cast<int64_t>(turn) * teams) * row_vectors + mine;
#pragma unroll
        for (int chunk = 0; chunk < kSliceChunks; chunk += kBatch) {
            float4 biases[kBatch];
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                biases[i] = next_bias[i];
                if (chunk + kBatch < kSliceChunks) {
                    next_bias[i] = kernels::load_with_policy(bias + (chunk + kBatch + i) * kChunkVectors, keep);
                }
            }
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                const float4 y = normalise(ring.get(chunk + i), mean, inverse_deviation, weights[chunk + i], biases[i]);
                __stcs(destination + (chunk + i) * kChunkVectors, y);
            }
            // The stores needed the values, so the ring's places are free.
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                const int ahead = chunk + i + kRingChunks;
                ring.refill(source(turn + ahead / kSliceChunks, ahead % kSliceChunks));
            }
        }
        ring.next_slice();
    }
}

template <int Width>
__global__ void __launch_bounds__(kernels::kSplitThreads)
    layer_norm_two_read_kernel(float* __restrict__ output, const float* __restrict__ input,
                               const float* __restrict__ weight, const float* __restrict__ bias,
                               const Moments* __restrict__ partial, int64_t length, int splits, float epsilon) {
    __shared__ float2 result;
    const int64_t row = blockIdx.x / splits;
    const int split = static_cast<int>(blockIdx.x % splits);
    const float2 statistics = kernels::merge_partials(partial + row * splits, splits, epsilon, &result);
    input += row * length;
    output += row * length;
    const int64_t stride = static_cast<int64_t>(splits) * kernels::kSplitThreads;
    for (int64_t i = static_cast<int64_t>(split) * kernels::kSplitThreads + threadIdx.x; i < length / Width;
         i += stride) {
        auto value = kernels::load<Width>(input + i * Width);
        const auto scale = kernels::load<Width>(weight + i * Width);
        const auto shift = kernels::load<Width>(bias + i * Width);
#pragma unroll
        for (int e = 0; e < Width; ++e) {
            value.element[e] =
                fmaf((value.element[e] - statistics.x) * statistics.y, scale.element[e], shift.element[e]);
        }
        kernels::store_streaming<Width>(output + i * Width, value);
    }
}

template <int Width>
void launch_two_read(float* output, const float* input, const float* weight, const float* bias, int64_t rows,
                     int64_t length, float epsilon, void* workspace, cudaStream_t stream) {
    const int splits = kernels::norm_splits(length);
    const unsigned blocks = static_cast<unsigned>(rows * splits);
    Moments* partial = static_cast<Moments*>(workspace);
    kernels::partial_moments_kernel<Width>
        <<<blocks, kernels::kSplitThreads, 0, stream>>>(partial, input, length, splits);
    CUDA_CHECK_LAUNCH();
    layer_norm_two_read_kernel<Width>
        <<<blocks, kernels::kSplitThreads, 0, stream>>>(output, input, weight, bias, partial, length, splits, epsilon);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// Bytes of device memory the launcher needs for its partial results.
extern "C" int64_t layer_norm_workspace_bytes(int64_t rows, int64_t length) {
    const int64_t two_read = rows * kernels::norm_splits(length) * static_cast<int64_t>(sizeof(Moments));
    const int64_t team = static_cast<int64_t>(sizeof(kernels::TeamBoard));
    return two_read > team ? two_read : team;
}

extern "C" void layer_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t rows, int64_t length, float epsilon, void* workspace, int config,
                                    cudaStream_t stream) {
    if (config < 0 || config > 1) {
        throw std::runtime_error("layer_norm: config must be 0 or 1, got " + std::to_string(config));
    }
    const bool vectors = length % 4 == 0 && kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16) &&
                         kernels::is_aligned(weight, 16) && kernels::is_aligned(bias, 16);
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int64_t team_blocks = length / kernels::kSliceFloats;
    if (config == 0 && vectors && length % kernels::kSliceFloats == 0 && team_blocks >= kMinTeamBlocks &&
        team_blocks <= multiprocessors && multiprocessors <= kernels::kMaxTeamBlocks && rows <= 1000000) {
        const int64_t most_teams = multiprocessors / team_blocks;
        int team = static_cast<int>(team_blocks);
        int row_count = static_cast<int>(rows);
        const int teams = static_cast<int>(rows < most_teams ? rows : most_teams);
        auto* board = static_cast<kernels::TeamBoard*>(workspace);
        CUDA_CHECK(cudaMemsetAsync(board->arrived, 0, sizeof(board->arrived), stream));
        CUDA_CHECK(cudaFuncSetAttribute(layer_norm_team_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        kernels::kRingBytes));
        void* arguments[] = {&output, &input, &weight, &bias, &row_count, &team, &epsilon, &board};
        CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(layer_norm_team_kernel),
                                               dim3(team * teams), dim3(kernels::kTeamThreads), arguments,
                                               kernels::kRingBytes, stream));
    } else if (vectors) {
        launch_two_read<4>(output, input, weight, bias, rows, length, epsilon, workspace, stream);
    } else {
        launch_two_read<1>(output, input, weight, bias, rows, length, epsilon, workspace, stream);
    }
}
