// Layer normalisation of long rows with a full-size affine map, fp32, rows [rows, length]:
//   y[r, i] = (x[r, i] - mean_r) / sqrt(var_r + epsilon) * weight[i] + bias[i],   var biased (divided by length).
//
// What bounds it. At 16 rows of 4,194,304 elements: x 268 MB read, y 268 MB written, weight and bias 16.8 MB each read
// once: 570 MB, 0.133 ms at 4.3 TB/s. But mean and variance of a row of 16.8 MB are known only after all of it was
// read, and weight and bias are wanted again by each of the 16 rows: done naively that is 268 MB more of x and 500 MB
// more of weight and bias, from DRAM or (where it fits) from L2, whose bandwidth is not much more than DRAM's.
//
// The algorithm: the chip is big enough to hold a whole row, 128 SMs x 128 KB; one more merges their moments. Block b
// owns the same 32768 columns of every row for the whole kernel (kernels/common/team.cuh):
//   shared memory   ring of 224 KB: this row's slice, and three quarters of the next one's already arriving
//   registers       the slice's weights, 128 floats in each of 256 threads, loaded once
//   L2              the biases (16.8 MB; x and y are marked evict-first), loaded 32 KB before their use
// While a row is normalised and stored, the next one is summed as it arrives. x is read once, y written once.
//
// Tried, on an H200 with 4.26 TB/s of copy bandwidth (CUDA events around single calls, L2 cold). Reading x twice
// (config 1): 0.240 ms. One phase after the other (wait for the slice, sum it, tell the others, wait for them,
// normalise): 0.221 ms; between two rows nothing was written, and what was in flight ran dry. The phases overlapped,
// each block asking for all others' moments: 0.187 ms. One block that merges them for all: 0.173 ms, with 24, 25 or 26
// steps of 28 ahead. Three eighths of the biases kept in registers as well brought nothing. Of experiments beside this
// kernel: without any exchange (wrong) 0.161 ms, without biases too 0.153; x loaded without evict-first 0.205, as the
// biases then leave L2; bulk copies for cp.async 0.174. A plain copy of as many bytes takes 0.149 ms, cudaMemcpy 0.134,
// so 88 % of the copy bandwidth, 0.152, would leave the exchange and the biases next to nothing.
//
// config 0: teams where the row is 4 or more slices of 16384 or 32768 columns, one per SM, else config 1. Of the ring's
//           28 steps of 8 KB, the moments run 24 ahead of the stores: 16 are the slice, 8 the time for the exchange
//           between blocks, and the last 4 the bytes in flight.
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

// weight and bias of the columns of one thread. In registers for good: the weights. The biases come from L2, kAhead
// chunks before their use, round and round.
template <typename Shape>
class ColumnAffine {
  public:
    __device__ __forceinline__ ColumnAffine(const float4* weight, const float4* bias) : weight_(weight), bias_(bias) {}

    __device__ __forceinline__ void start(int) {
#pragma unroll
        for (int chunk = 0; chunk < Shape::kSliceChunks; ++chunk) {
            weights_[chunk] = __ldcs(weight_ + chunk * Shape::kThreads);
        }
#pragma unroll
        for (int chunk = 0; chunk < kAhead; ++chunk) next_bias_[chunk] = load_bias(chunk);
    }

    __device__ __forceinline__ void begin(int) {}

    __device__ __forceinline__ float4 apply(float4 x, int chunk, float mean, float inverse_deviation) {
        const float4 weight = weights_[chunk];
        const float4 bias = next_bias_[chunk % kAhead];
        next_bias_[chunk % kAhead] = load_bias((chunk + kAhead) % Shape::kSliceChunks);
        return make_float4(fmaf((x.x - mean) * inverse_deviation, weight.x, bias.x),
                           fmaf((x.y - mean) * inverse_deviation, weight.y, bias.y),
                           fmaf((x.z - mean) * inverse_deviation, weight.z, bias.z),
                           fmaf((x.w - mean) * inverse_deviation, weight.w, bias.w));
    }

  private:
    static constexpr int kAhead = 8;
    static_assert(Shape::kSliceChunks % kAhead == 0, "the loads must go round evenly");

    __device__ __forceinline__ float4 load_bias(int chunk) const { return __ldg(bias_ + chunk * Shape::kThreads); }

    const float4* weight_;
    const float4* bias_;
    float4 weights_[Shape::kSliceChunks];
    float4 next_bias_[kAhead];
};

template <typename Shape>
__global__ void __launch_bounds__(Shape::kBlockThreads, 1)
    layer_norm_team_kernel(float4* __restrict__ output, const float4* __restrict__ input,
                           const float4* __restrict__ weight, const float4* __restrict__ bias, kernels::TeamWork work) {
    extern __shared__ float4 ring_memory[];
    const int mine = blockIdx.x % work.team_blocks * Shape::kSliceVectors + static_cast<int>(threadIdx.x);
    ColumnAffine<Shape> affine(weight + mine, bias + mine);
    kernels::normalise_segments<Shape>(output, input, work, ring_memory, affine);
}

// False where the shape does not suit slices of this size.
template <typename Shape>
bool launch_team(float* output, const float* input, const float* weight, const float* bias, int rows, int64_t length,
                 float epsilon, void* workspace, cudaStream_t stream) {
    const int team_blocks = kernels::team_blocks(length, Shape::kSliceFloats, kernels::multiprocessor_count());
    if (team_blocks == 0) return false;
    kernels::TeamWork work{rows, team_blocks, epsilon, static_cast<kernels::Post*>(workspace)};
    void* arguments[] = {&output, &input, &weight, &bias, &work};
    kernels::launch_team<Shape>(layer_norm_team_kernel<Shape>, work, arguments, stream);
    return true;
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
    const int64_t team = kernels::team_post_bytes(rows, kernels::kMaxTeamBlocks);
    return two_read > team ? two_read : team;
}

extern "C" void layer_norm_launcher(float* output, const float* input, const float* weight, const float* bias,
                                    int64_t rows, int64_t length, float epsilon, void* workspace, int config,
                                    cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("layer_norm: config must be 0 or 1, got %d", config);
    }
    const bool vectors = length % 4 == 0 && kernels::is_aligned(input, 16) && kernels::is_aligned(output, 16) &&
                         kernels::is_aligned(weight, 16) && kernels::is_aligned(bias, 16);
    if (config == 0 && vectors && rows <= 1000000) {
        const auto with = [&](auto* launch) {
            return launch(output, input, weight, bias, static_cast<int>(rows), length, epsilon, workspace, stream);
        };
        // Batches of 8 floats: 16 would take registers that the weights need.
        if (with(launch_team<TeamShape<256, 16384, 16 * 2048, true>>)) return;
        if (with(launch_team<TeamShape<256, 32768, 24 * 2048, true, 8>>)) return;
    }
    if (vectors) {
        launch_two_read<4>(output, input, weight, bias, rows, length, epsilon, workspace, stream);
    } else {
        launch_two_read<1>(output, input, weight, bias, rows, length, epsilon, workspace, stream);
    }
}
