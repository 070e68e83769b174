// Cross entropy of rows of logits [rows, classes], fp32, against class indices, int64, averaged over the rows:
//   loss = mean over r of  log(sum over c of exp(x[r, c])) - x[r, target[r]].
//
// What bounds it. One read of the logits: 537 MB at 32768 x 4096, 0.125 ms at 4.3 TB/s (a little less: reads alone are
// faster than a copy). One exp per logit, 1.3e8 at 16 per clock and SM, is 0.04 ms and hidden behind the loads.
//
// The algorithm: a warp per row, which needs no barrier. Each lane keeps a running (maximum, sum of exponentials) and
// merges in 32 logits at a time, so that the rescaling costs one exp in 33; eight 16-byte loads per lane are in flight,
// 128 KB per SM. Log and target follow in registers: nothing but a partial sum per block is ever written. The mean is
// taken in two stages of fixed order (lane, warp and block, then one block over the blocks' sums), so the result
// repeats bit for bit; atomic adds would not.
//
// Targets equal to ignored_target (PyTorch's ignore_index, -100) count for nothing; any other outside 0 .. classes - 1
// makes the loss NaN, where PyTorch stops the device.
//
// config 0: 256 threads per block. config 1: 128 threads. config 2: 512 threads.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/online_softmax.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace {

using kernels::kWarpSize;
using kernels::SoftmaxState;

constexpr int kLoads = 8;  // vectors in flight per lane
constexpr int kMeanThreads = 256;
constexpr int kWarpsPerMultiprocessor = 32;  // resident at 64 registers per thread

// (sum of losses, rows counted) of each block.
template <int Threads, int Width>
__global__ void __launch_bounds__(Threads, kWarpsPerMultiprocessor* kWarpSize / Threads)
    row_losses_kernel(float2* __restrict__ partial, const float* __restrict__ logits,
                      const int64_t* __restrict__ targets, int64_t rows, int64_t classes, int64_t ignored_target) {
    constexpr int kWarps = Threads / kWarpSize;
    __shared__ float2 warp_partial[kWarps];
    const int lane = threadIdx.x % kWarpSize;
    const int64_t warps = static_cast<int64_t>(gridDim.x) * kWarps;
    float loss_sum = 0.f;
    float counted = 0.f;

    for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarpSize; row < rows; row += warps) {
        const float* x = logits + row * classes;
        const int64_t target = targets[row];
        if (target == ignored_target) continue;
        const bool in_range = target >= 0 && target < classes;
        const float target_logit = in_range ? x[target] : NAN;

        SoftmaxState state;
        for (int64_t base = lane * Width; base < classes; base += kLoads * kWarpSize * Width) {
            kernels::Vector<float, Width> value[kLoads];
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
                const int64_t at = base + i * kWarpSize * Width;
                if (at < classes) {
                    value[i] = kernels::load_streaming<Width>(x + at);
                } else {
#pragma unroll
                    for (int e = 0; e < Width; ++e) value[i].element[e] = -INFINITY;
                }
            }
            float max = state.max;
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
#pragma unroll
                for (int e = 0; e < Width; ++e) max = fmaxf(max, value[i].element[e]);
            }
            const float shift = max == -INFINITY ? 0.f : max * kernels::kLog2E;
            float sum = state.sum * kernels::exp_below(state.max, max);
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
#pragma unroll
                for (int e = 0; e < Width; ++e)
                    sum += kernels::exp2_flushed(fmaf(value[i].element[e], kernels::kLog2E, -shift));
            }
            state = {max, sum};
        }
        state = kernels::warp_merge(state);
        loss_sum += state.max + logf(state.sum) - target_logit;
        counted += 1.f;
    }

    if (lane == 0) warp_partial[threadIdx.x / kWarpSize] = make_float2(loss_sum, counted);
    __syncthreads();
    if (threadIdx.x == 0) {
        float2 total = warp_partial[0];
#pragma unroll
        for (int warp = 1; warp < kWarps; ++warp) {
            total.x += warp_partial[warp].x;
            total.y += warp_partial[warp].y;
        }
        partial[blockIdx.x] = total;
    }
}

__global__ void __launch_bounds__(kMeanThreads)
    mean_loss_kernel(float* __restrict__ loss, const float2* __restrict__ partial, int blocks) {
    __shared__ float scratch[kMeanThreads / kWarpSize];
    float sum = 0.f;
    float counted = 0.f;
    for (int i = threadIdx.x; i < blocks; i += kMeanThreads) {
        sum += partial[i].x;
        counted += partial[i].y;
    }
    sum = kernels::block_reduce<kMeanThreads>(sum, kernels::Sum{}, scratch);
    counted = kernels::block_reduce<kMeanThreads>(counted, kernels::Sum{}, scratch);
    if (threadIdx.x == 0) *loss = sum / counted;  // no row counted: 0 / 0 = NaN, as in PyTorch
}

int grid_blocks(int threads) {
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    return multiprocessors * kWarpsPerMultiprocessor * kWarpSize / threads;
}

template <int Threads>
void launch(float* loss, const float* logits, const int64_t* targets, int64_t rows, int64_t classes,
            int64_t ignored_target, void* workspace, cudaStream_t stream) {
    auto* partial = static_cast<float2*>(workspace);
    const int blocks = grid_blocks(Threads);
    if (classes % 4 == 0 && kernels::is_aligned(logits, 16)) {
        row_losses_kernel<Threads, 4>
            <<<blocks, Threads, 0, stream>>>(partial, logits, targets, rows, classes, ignored_target);
    } else {
        row_losses_kernel<Threads, 1>
            <<<blocks, Threads, 0, stream>>>(partial, logits, targets, rows, classes, ignored_target);
    }
    CUDA_CHECK_LAUNCH();
    mean_loss_kernel<<<1, kMeanThreads, 0, stream>>>(loss, partial, blocks);
    CUDA_CHECK_LAUNCH();
}

}  // namespace

// Bytes of device memory the launcher needs for the blocks' sums, enough for every config.
extern "C" int64_t cross_entropy_workspace_bytes() {
    return static_cast<int64_t>(sizeof(float2)) * grid_blocks(128);
}

extern "C" void cross_entropy_launcher(float* loss, const float* logits, const int64_t* targets, int64_t rows,
                                       int64_t classes, int64_t ignored_target, void* workspace, int config,
                                       cudaStream_t stream) {
    if (config == 0) {
        launch<256>(loss, logits, targets, rows, classes, ignored_target, workspace, stream);
    } else if (config == 1) {
        launch<128>(loss, logits, targets, rows, classes, ignored_target, workspace, stream);
    } else if (config == 2) {
        launch<512>(loss, logits, targets, rows, classes, ignored_target, workspace, stream);
    } else {
        kernels::throw_error("cross_entropy: config must be 0, 1 or 2, got %d", config);
    }
}
