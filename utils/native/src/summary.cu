// The summary of a tensor on the GPU: a fixed grid, merged in a fixed order.
#include <algorithm>

#include "context.h"
#include "summary.h"
#include "walker.h"

namespace {

constexpr int kThreads = 256;

template <int DIMS>
__global__ void __launch_bounds__(kThreads) summarise(const __grid_constant__ Walk walk, Summary* parts) {
    const int width = item_size(walk.actual_dtype);
    const int64_t step = int64_t(gridDim.x) * kThreads;
    int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    Summary mine = empty_summary();
    Walker<DIMS> walker(walk, i < walk.count ? i : 0, step);
    for (; i < walk.count; i += step, walker.advance(walk))
        add(mine, walk.actual_dtype, static_cast<const char*>(walk.actual) + walker.actual * width);

    __shared__ Summary of_thread[kThreads];
    of_thread[threadIdx.x] = mine;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (int(threadIdx.x) < half) merge(of_thread[threadIdx.x], of_thread[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) parts[blockIdx.x] = of_thread[0];
}

}  // namespace

// Summarises the walk's `actual`; waits for `stream`.
NATIVE_API int32_t native_summary_cuda(int32_t device, cudaStream_t stream, const Walk* walk, Summary* summary) {
    ENTER(device);
    const int blocks = int(std::min<int64_t>(8 * multiprocessors(device), (walk->count + kThreads - 1) / kThreads));
    const Mailbox mailbox(blocks * sizeof(Summary));
    if (mailbox.memory == nullptr) return mailbox.status;
    Summary* parts = static_cast<Summary*>(mailbox.memory);
    if (walk->ndim == 1)
        summarise<1><<<blocks, kThreads, 0, stream>>>(*walk, parts);
    else
        summarise<0><<<blocks, kThreads, 0, stream>>>(*walk, parts);
    RUNTIME(cudaGetLastError());
    RUNTIME(cudaStreamSynchronize(stream));
    *summary = empty_summary();
    for (int b = 0; b < blocks; ++b) merge(*summary, parts[b]);
    return kOk;
}
