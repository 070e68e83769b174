// Group normalisation, fp32, x [samples, channels, positions] with channels split into groups of neighbours:
//   y[s, c, p] = (x[s, c, p] - mean_sg) / sqrt(var_sg + epsilon) * weight[c] + bias[c],
// mean and biased variance over the channels / groups * positions values of sample s and group g of c.
//
// What bounds it. At 112 x 64 x 512 x 512 in 8 groups: 7.5 GB read, 7.5 GB written, 3.5 ms at 4.3 TB/s. A group's
// 2,097,152 values (8.4 MB) are contiguous, and its statistics are known only after all were read. Reading them again
// costs 1.5x the traffic, from DRAM or, with few enough groups in flight, from L2, whose bandwidth is not much more
// than DRAM's.
//
// The algorithm: a team of 64 blocks, one per SM, holds a whole group on chip, 128 KB each; two teams fill 128 of 132
// SMs and work through the 896 groups (kernels/common/team.cuh). Shared memory is a ring of 224 KB: this group's slice,
// and three quarters of the next one's already arriving while the team waits for its statistics; every 16 bytes taken
// out are refilled at once. x is read once and y written once. A slice lies within one channel, so weight and bias are
// two scalars.
//
// config 0: teams where a group is 32768 x (a team of 32 or more SMs) values and positions a multiple of 32768, else 1.
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

// Segment: one group of one sample, numbered sample * groups + group, which is the order they lie in.
__global__ void __launch_bounds__(kernels::kTeamThreads, 1)
    group_norm_team_kernel(float4* __restrict__ output, const float4* __restrict__ input,
                           const float* __restrict__ weight, const float* __restrict__ bias, int segments, int groups,
                           int group_channels, int slices_per_channel, int team_blocks, float epsilon,
                           kernels::TeamBoard* board) {
    extern __shared__ float4 ring_memory[];
    __shared__ Moments partial[kernels::kTeamThreads / kernels::kWarpSize];
    __shared__ float2 statistics;  // (mean, inverse deviation) of the current segment
    constexpr int kBatch = 4;      // chunks normalised together

    const int team = blockIdx.x / team_blocks;
    const int teams = gridDim.x / team_blocks;
    const int member = blockIdx.x % team_blocks;
    const int turns = (segments - team + teams - 1) / teams;  // segments of this team: team, team + teams, ...
    const int64_t segment_vectors = static_cast<int64_t>(team_blocks) * kernels::kSliceVectors;
    const int64_t mine = member * static_cast<int64_t>(kernels::kSliceVectors) + threadIdx.x;

    const auto source = [&](int turn, int chunk) -> const float4* {
        if (turn >= turns) return nullptr;
        return input + (team + static_cast<int64_t>(turn) * teams) * segment_vectors + mine + chunk * kChunkVectors;
    };

    kernels::SliceRing ring(ring_memory, kernels::evict_first_policy());
#pragma unroll
    for (int i = 0; i < kRingChunks; ++i) ring.refill(source(i / kSliceChunks, i % kSliceChunks));

    for (int turn = 0; turn < turns; ++turn) {
        const int segment = team + turn * teams;
        const int channel = segment % groups * group_channels + member / slices_per_channel;
        const float channel_weight = weight[channel];
        const float channel_bias = bias[channel];

        ring.wait_slice();
        Moments m = kernels::slice_moments(ring, partial);
        if (threadIdx.x < kernels::kWarpSize) {
            kernels::post_moments(board, team, turn, m);
            m = kernels::await_moments(board, team, team_blocks, turn);
            if (threadIdx.x == 0) statistics = make_float2(m.mean, rsqrtf(m.deviation / m.count + epsilon));
        }
        __syncthreads();
        const float mean = statistics.x;
        const float scale = statistics.y * channel_weight;

        float4* destination = output + segment * segment_vectors + mine;
#pragma unroll
        for (int chunk = 0; chunk < kSliceChunks; chunk += kBatch) {
            float4 value[kBatch];
#pragma unroll
            for (int i = 0; i < kBatch; ++i) value[i] = ring.get(chunk + i);
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                __stcs(destination + (chunk + i) * kChunkVectors,
                       make_float4(
                           fmaf(value[i].x - mean, scale, channel_bias), fmaf(value[i].y - mean, scale, channel_bias),
                           fmaf(value[i].z - mean, scale, channel_bias), fmaf(value[i].w - mean, scale, channel_bias)));
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

// Width divides positions, so that a vector lies within one channel.
template <int Width>
__global__ void __launch_bounds__(kernels::kSplitThreads)
    group_norm_two_read_kernel(float* __restrict__ output, const float* __restrict__ input,
                               const float* __restrict__ weight, const float* __restrict__ bias,
                               const Moments* __restrict__ partial, int groups, int group_channels, int64_t positions,
                               int splits, float epsilon) {
    __shared__ float2 result;
    const int64_t segment = blockIdx.x / splits;
    const int split = static_cast<int>(blockIdx.x % splits);
    const float2 statistics = kernels::merge_partials(partial + segment * splits, splits, epsilon, &result);
    const int64_t length = group_channels * positions;
    const int first_channel = static_cast<int>(segment % groups) * group_channels;
    input += segment * length;
    output += segment * length;
    const int64_t stride = static_cast<int64_t>(splits) * kernels::kSplitThreads;
    for (int64_t i = static_cast<int64_t>(split) * kernels::kSplitThreads + threadIdx.x; i < length / Width;
         i += stride) {
        const int channel = first_channel + static_cast<int>(i * Width / positions);
        const float scale = statistics.y * weight[channel];
        const float shift = bias[channel];
        auto value = kernels::load<Width>(input + i * Width);
#pragma unroll
        for (int e = 0; e < Width; ++e) value.element[e] = fmaf(value.element[e] - statistics.x, scale, shift);
        kernels::store_streaming<Width>(output + i * Width, value);
    }
}

template <int Width>
void launch_two_read(float* output, const float* input, const float* weight, const float* bias, int64_t segments,
                     int groups, int group_channels, int64_t positions, float epsilon, void* workspace,
                     cudaStream_t stream) {
    const int64_t length = group_channels * positions;
    const int splits = kernels::norm_splits(length);
    const unsigned blocks = static_cast<unsigned>(segments * splits);
    Moments* partial = static_cast<Moments*>(workspace);
    kernels::partial_moments_kernel<Width>
        <<<blocks, kernels::kSplitThreads, 0, stream>>>(partial, input, length, splits);
    CUDA_CHECK_LAUNCH();
    group_norm_two_read_kernel<Width><<<blocks, kernels::kSplitThreads, 0, stream>>>(
        output, input, weight, bias, partial, groups, group_channels, positions, splits, epsilon);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// Bytes of device memory the launcher needs for its partial results; segments = samples * groups.
extern "C" int64_t group_norm_workspace_bytes(int64_t segments, int64_t segment_length) {
    const int64_t two_read = segments * kernels::norm_splits(segment_length) * static_cast<int64_t>(sizeof(Moments));
    const int64_t team = static_cast<int64_t>(sizeof(kernels::TeamBoard));
    return two_read > team ? two_read : team;
}

extern "C" void group_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t samples, int64_t channels, int64_t positions, int64_t groups, float epsilon,
                                    void* workspace, int config, cudaStream_t stream) {
    if (config < 0 || config > 1) {
        throw std::runtime_error("group_norm: config must be 0 or 1, got " + std::to_string(config));
    }
    int segments = static_cast<int>(samples * groups);
    int group_count = static_cast<int>(groups);
    int group_channels = static_cast<int>(channels / groups);
    const bool aligned = kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16);
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    const int64_t team_blocks = group_channels * positions / kernels::kSliceFloats;
    if (config == 0 && aligned && positions % kernels::kSliceFloats == 0 && team_blocks >= kMinTeamBlocks &&
        team_blocks <= multiprocessors && multiprocessors <= kernels::kMaxTeamBlocks) {
        const int most_teams = static_cast<int>(multiprocessors / team_blocks);
        const int teams = segments < most_teams ? segments : most_teams;
        int team = static_cast<int>(team_blocks);
        int slices_per_channel = static_cast<int>(positions / kernels::kSliceFloats);
        auto* board = static_cast<kernels::TeamBoard*>(workspace);
        CUDA_CHECK(cudaMemsetAsync(board->arrived, 0, sizeof(board->arrived), stream));
        CUDA_CHECK(cudaFuncSetAttribute(group_norm_team_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        kernels::kRingBytes));
        void* arguments[] = {&output,   &input,       &weight,         &bias,
                             &segments, &group_count, &group_channels, &slices_per_channel,
                             &team,     &epsilon,     &board};
        CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(group_norm_team_kernel),
                                               dim3(team * teams), dim3(kernels::kTeamThreads), arguments,
                                               kernels::kRingBytes, stream));
    } else if (aligned && positions % 4 == 0) {
        launch_two_read<4>(output, input, weight, bias, segments, group_count, group_channels, positions, epsilon,
                           workspace, stream);
    } else {
        launch_two_read<1>(output, input, weight, bias, segments, group_count, group_channels, positions, epsilon,
                           workspace, stream);
    }
}
