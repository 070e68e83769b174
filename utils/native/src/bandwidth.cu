// The device's own copy bandwidth: the yardstick for everything bound by memory.
#include <algorithm>

#include "context.h"

namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads)
    copy(const uint4* __restrict__ from, uint4* __restrict__ to, int64_t count) {
    constexpr int kUnroll = 4;
    const int64_t begin = int64_t(blockIdx.x) * kThreads * kUnroll + threadIdx.x;
    uint4 held[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
        if (begin + u * kThreads < count) held[u] = __ldcs(from + begin + u * kThreads);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
        if (begin + u * kThreads < count) __stcs(to + begin + u * kThreads, held[u]);
}

// Frees what was made, however the measurement ends.
struct Resources {
    uint4 *from = nullptr, *to = nullptr;
    cudaEvent_t first = nullptr, last = nullptr;
    ~Resources() {
        cudaFree(from);
        cudaFree(to);
        if (first != nullptr) cudaEventDestroy(first);
        if (last != nullptr) cudaEventDestroy(last);
    }
};

int32_t measure(Resources& r, int64_t nbytes, int32_t repeats, double* best) {
    const int64_t count = nbytes / 16;
    const unsigned blocks = unsigned((count + kThreads * 4 - 1) / (kThreads * 4));
    RUNTIME(cudaMalloc(&r.from, nbytes));
    RUNTIME(cudaMalloc(&r.to, nbytes));
    RUNTIME(cudaEventCreate(&r.first));
    RUNTIME(cudaEventCreate(&r.last));
    // Content matters to power and so to clocks: not all zeros.
    RUNTIME(cudaMemset(r.from, 0x5a, nbytes));
    float shortest = 1e30f;
    for (int32_t i = 0; i < 2 * (repeats + 1); ++i) {
        RUNTIME(cudaEventRecord(r.first));
        if (i % 2 == 0)
            copy<<<blocks, kThreads>>>(r.from, r.to, count);
        else
            RUNTIME(cudaMemcpyAsync(r.to, r.from, nbytes, cudaMemcpyDeviceToDevice));
        RUNTIME(cudaGetLastError());
        RUNTIME(cudaEventRecord(r.last));
        RUNTIME(cudaEventSynchronize(r.last));
        float milliseconds = 0;
        RUNTIME(cudaEventElapsedTime(&milliseconds, r.first, r.last));
        if (i >= 2 && milliseconds > 0) shortest = std::min(shortest, milliseconds);
    }
    *best = 2.0 * double(nbytes) / (double(shortest) * 1e-3);
    return kOk;
}

}  // namespace

// Bytes per second, read and written together, of copying `nbytes`: the best of `repeats` after one to warm up.
NATIVE_API int32_t native_copy_bandwidth(int32_t device, int64_t nbytes, int32_t repeats, double* rate) {
    if (nbytes < 1 << 20 || repeats < 1) return native_fail(kBadArgument, "a copy of at least 1 MiB, at least once");
    ENTER(device);
    Resources resources;
    return measure(resources, nbytes / 16 * 16, repeats, rate);
}
