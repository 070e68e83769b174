// CUDA events, the flush of L2 between timed calls, and a delay that keeps the stream busy.
#include <array>
#include <mutex>

#include "context.h"

namespace {

constexpr int kThreads = 256;
constexpr int kLine = 128;  // bytes of an L2 cache line

struct FlushBuffer {
    unsigned char* memory = nullptr;
    int64_t bytes = 0;
};

// Twice the device's L2, made once per device and kept.
int32_t flush_buffer(int32_t device, FlushBuffer* buffer) {
    static std::mutex mutex;
    static std::array<FlushBuffer, 64> buffers;
    const std::lock_guard<std::mutex> lock(mutex);
    FlushBuffer& mine = buffers[device];
    if (mine.memory == nullptr) {
        int l2 = 0;
        RUNTIME(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
        mine.bytes = (2 * int64_t(l2) + (2 << 20) - 1) / (2 << 20) * (2 << 20);
        if (mine.bytes == 0) mine.bytes = 64 << 20;
        RUNTIME(cudaMalloc(&mine.memory, mine.bytes));
    }
    *buffer = mine;
    return kOk;
}

// Writes the whole buffer with the priority "evict last". A sweep of ordinary lines would spare lines that a solution
// marked so; one of equals displaces them.
__global__ void __launch_bounds__(kThreads) occupy(unsigned char* buffer, int64_t bytes, unsigned value) {
#if __CUDA_ARCH__ >= 800
    uint64_t policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
    const int64_t step = int64_t(gridDim.x) * kThreads * 16;
    for (int64_t at = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * 16; at < bytes; at += step) {
#if __CUDA_ARCH__ >= 800
        asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1, %1, %1, %1}, %2;"
                     :
                     : "l"(buffer + at), "r"(value), "l"(policy)
                     : "memory");
#else
        *reinterpret_cast<uint4*>(buffer + at) = make_uint4(value, value, value, value);
#endif
    }
}

// Then gives the lines up: back to ordinary priority, and discarded, so that the timed call finds room and no dirty
// lines that would have to be written back at its expense.
__global__ void __launch_bounds__(kThreads) vacate(unsigned char* buffer, int64_t bytes) {
#if __CUDA_ARCH__ >= 800
    const int64_t step = int64_t(gridDim.x) * kThreads * kLine;
    for (int64_t at = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kLine; at < bytes; at += step) {
        asm volatile("applypriority.global.L2::evict_normal [%0], 128;" : : "l"(buffer + at) : "memory");
        asm volatile("discard.global.L2 [%0], 128;" : : "l"(buffer + at) : "memory");
    }
#endif
}

__device__ uint64_t nanoseconds() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

__global__ void spin(uint64_t duration) {
    const uint64_t begin = nanoseconds();
    while (nanoseconds() - begin < duration) {
    }
}

}  // namespace

// Waits for the stream, resets persisting lines and forbids new ones, then sweeps L2. The sweep itself is queued on
// `stream` and not waited for.
NATIVE_API int32_t native_flush_l2(int32_t device, cudaStream_t stream) {
    ENTER(device);
    FlushBuffer buffer;
    const int32_t status = flush_buffer(device, &buffer);
    if (status != kOk) return status;
    // The resets act at once, not in stream order: what is still running could mark lines after them.
    RUNTIME(cudaStreamSynchronize(stream));
    int persisting = 0;
    RUNTIME(cudaDeviceGetAttribute(&persisting, cudaDevAttrMaxPersistingL2CacheSize, device));
    if (persisting > 0) {
        RUNTIME(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
        RUNTIME(cudaCtxResetPersistingL2Cache());
    }
    const int blocks = 8 * multiprocessors(device);
    occupy<<<blocks, kThreads, 0, stream>>>(buffer.memory, buffer.bytes, 0x5a5a5a5au);
    vacate<<<blocks, kThreads, 0, stream>>>(buffer.memory, buffer.bytes);
    RUNTIME(cudaGetLastError());
    return kOk;
}

// Keeps `stream` busy for `microseconds`, a second at most.
NATIVE_API int32_t native_delay(int32_t device, cudaStream_t stream, double microseconds) {
    if (!(microseconds >= 0)) return native_fail(kBadArgument, "a delay of %g us is none", microseconds);
    ENTER(device);
    spin<<<1, 1, 0, stream>>>(uint64_t((microseconds < 1e6 ? microseconds : 1e6) * 1e3));
    RUNTIME(cudaGetLastError());
    return kOk;
}

NATIVE_API int32_t native_events_create(int32_t device, int32_t count, cudaEvent_t* events) {
    ENTER(device);
    for (int32_t i = 0; i < count; ++i) RUNTIME(cudaEventCreate(&events[i]));
    return kOk;
}

NATIVE_API int32_t native_events_destroy(int32_t device, int32_t count, cudaEvent_t* events) {
    ENTER(device);
    for (int32_t i = 0; i < count; ++i) cudaEventDestroy(events[i]);
    cudaGetLastError();
    return kOk;
}

NATIVE_API int32_t native_event_record(int32_t device, cudaEvent_t event, cudaStream_t stream) {
    ENTER(device);
    RUNTIME(cudaEventRecord(event, stream));
    return kOk;
}

// Waits for `last`; milliseconds between the two events, resolution about half a microsecond.
NATIVE_API int32_t native_event_elapsed(int32_t device, cudaEvent_t first, cudaEvent_t last, double* milliseconds) {
    ENTER(device);
    RUNTIME(cudaEventSynchronize(last));
    float elapsed = 0;
    RUNTIME(cudaEventElapsedTime(&elapsed, first, last));
    *milliseconds = double(elapsed);
    return kOk;
}
