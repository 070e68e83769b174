// Group normalisation, fp32, x [samples, channels, positions] with channels split into groups of neighbours:
//   y[s, c, p] = (x[s, c, p] - mean_sg) / sqrt(var_sg + epsilon) * weight[c] + bias[c],
// mean and biased variance over the channels / groups * positions values of sample s and group g of c.
//
// What bounds it. At 112 x 64 x 512 x 512 in 8 groups: 7.5 GB read, 7.5 GB written, 3.5 ms at 4.3 TB/s. A group's
// 2,097,152 values (8.4 MB) are contiguous, and its statistics are known only after all were read. Reading them again
// costs 1.5x the traffic, from DRAM or, with few enough groups in flight, from L2, whose bandwidth is not much more
// than DRAM's.
//
// The algorithm: a team of 128 blocks, one per SM, holds a whole group on chip, 64 KB each, and works through the 896
// groups (kernels/common/team.cuh). Shared memory is a ring of 224 KB, three and a half groups: while one group is
// normalised and stored, the second or third after it is summed as it arrives, so that the blocks have more than a
// group's time to tell each other their moments, and nobody waits. x is read once and y written once. A slice lies
// within one channel, so weight and bias are two scalars.
//
// Tried, on an H200 with 4.26 TB/s of copy bandwidth (CUDA events around single calls, L2 cold). Reading x twice
// (config 1): 5.34 ms. Two teams of 64 SMs with 128 KB each, one phase after the other (wait for the slice, sum it,
// tell the others, wait for them, normalise): 4.58 ms; between two groups nothing was written and what was in flight
// ran dry. The phases overlapped, each block asking for all others' moments: 4.3 to 4.5 ms, less with more time for the
// exchange. One block that merges them for all: 4.09 ms with 512 threads, 3.96 with 256, the moments 21 or 22 steps of
// 28 ahead, x loaded with no hint to L2 (4.17 with evict-first at 512). cudaMemcpy of as many bytes takes 3.51 ms, a
// plain copy kernel 3.88: 3.96 is 89 % of the one.
//
// config 0: teams where a group is 4 or more slices of 16384 or 32768 values, one per SM, and a channel whole slices;
//           else config 1. Of the ring's 28 steps of 8 KB, the moments run 22 ahead of the stores.
// config 1: two kernels, moments (split over blocks, merged exactly) and normalise. It reads x twice, handles every
//           shape.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/team.cuh"
#include "common/two_read_norm.cuh"
#include "common/vector.cuh"

namespace {

using kernels::Moments;
using kernels::TeamShape;

// Weight and bias of a block's slice, which lies within one channel. Segment: one group of one sample, numbered
// sample * groups + group, which is the order they lie in.
class ChannelAffine {
  public:
    // `member_channel`: the slice's channel, counted from the first of its group.
    __device__ __forceinline__ ChannelAffine(const float* weight, const float* bias, int groups, int group_channels,
                                             int member_channel)
        : weight_(weight + member_channel),
          bias_(bias + member_channel),
          groups_(groups),
          group_channels_(group_channels) {}

    __device__ __forceinline__ void start(int segment) { load(segment); }

    __device__ __forceinline__ void begin(int next_segment) {
        weight_now_ = next_weight_;
        bias_now_ = next_bias_;
        load(next_segment);
    }

    __device__ __forceinline__ float4 apply(float4 x, int, float mean, float inverse_deviation) const {
        const float scale = inverse_deviation * weight_now_;
        return make_float4(fmaf(x.x - mean, scale, bias_now_), fmaf(x.y - mean, scale, bias_now_),
                           fmaf(x.z - mean, scale, bias_now_), fmaf(x.w - mean, scale, bias_now_));
    }

  private:
    __device__ __forceinline__ void load(int segment) {
        const int first_channel = segment % groups_ * group_channels_;
        next_weight_ = weight_[first_channel];
        next_bias_ = bias_[first_channel];
    }

    const float* weight_;
    const float* bias_;
    int groups_;
    int group_channels_;
    float weight_now_ = 0.f;
    float bias_now_ = 0.f;
    float next_weight_ = 0.f;  // a segment ahead: nobody waits for them
    float next_bias_ = 0.f;
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kBlockThreads, 1)
    group_norm_team_kernel(float4* __restrict__ output, const float4* __restrict__ input,
                           const float* __restrict__ weight, const float* __restrict__ bias, int groups,
                           int group_channels, int slices_per_channel, kernels::TeamWork work) {
    extern __shared__ float4 ring_memory[];
    const int member = blockIdx.x % work.team_blocks;
    ChannelAffine affine(weight, bias, groups, group_channels, member / slices_per_channel);
    kernels::normalise_segments<Shape>(output, input, work, ring_memory, affine);
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

// False where the shape does not suit slices of this size.
template <typename Shape>
bool launch_team(float* output, const float* input, const float* weight, const float* bias, int segments, int groups,
                 int group_channels, int64_t positions, float epsilon, void* workspace, cudaStream_t stream) {
    const int team_blocks =
        kernels::team_blocks(group_channels * positions, Shape::kSliceFloats, kernels::multiprocessor_count());
    if (team_blocks == 0 || positions % Shape::kSliceFloats != 0) return false;
    int slices_per_channel = static_cast<int>(positions / Shape::kSliceFloats);
    kernels::TeamWork work{segments, team_blocks, epsilon, static_cast<kernels::Post*>(workspace)};
    void* arguments[] = {&output, &input, &weight, &bias, &groups, &group_channels, &slices_per_channel, &work};
    kernels::launch_team<Shape>(group_norm_team_kernel<Shape>, work, arguments, stream);
    return true;
}

}  // namespace

// Bytes of device memory the launcher needs for its partial results; segments = samples * groups.
extern "C" int64_t group_norm_workspace_bytes(int64_t segments, int64_t segment_length) {
    const int64_t two_read = segments * kernels::norm_splits(segment_length) * static_cast<int64_t>(sizeof(Moments));
    const int64_t team = kernels::team_post_bytes(segments, kernels::kMaxTeamBlocks);
    return two_read > team ? two_read : team;
}

extern "C" void group_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t samples, int64_t channels, int64_t positions, int64_t groups, float epsilon,
                                    void* workspace, int config, cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("group_norm: config must be 0 or 1, got %d", config);
    }
    const int segments = static_cast<int>(samples * groups);
    const int group_count = static_cast<int>(groups);
    const int group_channels = static_cast<int>(channels / groups);
    const bool aligned = kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16);
    if (config == 0 && aligned) {
        const auto with = [&](auto* launch) {
            return launch(output, input, weight, bias, segments, group_count, group_channels, positions, epsilon,
                          workspace, stream);
        };
        if (with(launch_team<TeamShape<256, 16384, 22 * 2048, false, 8>>)) return;
        if (with(launch_team<TeamShape<256, 32768, 22 * 2048, false, 8>>)) return;
    }
    if (aligned && positions % 4 == 0) {
        launch_two_read<4>(output, input, weight, bias, segments, group_count, group_channels, positions, epsilon,
                           workspace, stream);
    } else {
        launch_two_read<1>(output, input, weight, bias, segments, group_count, group_channels, positions, epsilon,
                           workspace, stream);
    }
}
