// Kernels with the faults that need a real GPU to show: y = 2 x for float32, each wrong in its own way.
#undef NDEBUG
#include <cassert>
#include <chrono>
#include <cstdint>
#include <thread>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__global__ void twice_kernel(float* y, const float* x, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

__global__ void far_kernel(float* y, const float* x, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) y[i + (int64_t{1} << 44)] = 2.0f * x[i];
}

__global__ void assert_kernel(float* y, const float* x, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    assert(i < 64);
    if (i < n) y[i] = 2.0f * x[i];
}

__global__ void past_end_kernel(float* y, float* x, int64_t n) {
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
    if (i < 16) x[n + i] = 0.0f;
}

__global__ void spin_kernel(float* y, const float* x, int64_t n, int64_t nanoseconds) {
    uint64_t begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < static_cast<uint64_t>(nanoseconds));
    const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}

__global__ void copy_kernel(uint8_t* y, const uint8_t* x, int64_t n) {
    const int64_t step = int64_t{gridDim.x} * blockDim.x;
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) y[i] = x[i];
}

int blocks(int64_t n) {
    return static_cast<int>((n + kThreads - 1) / kThreads);
}

cudaStream_t own_stream() {
    static cudaStream_t stream = [] {
        cudaStream_t made = nullptr;
        cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        return made;
    }();
    return stream;
}

}  // namespace

extern "C" void faulty_launcher(float* y, float* x, int64_t n, int fault, cudaStream_t stream) {
    static int calls = 0;
    ++calls;
    switch (fault) {
        case 1:  // a non-blocking stream of its own, never joined
            twice_kernel<<<blocks(n), kThreads, 0, own_stream()>>>(y, x, n);
            break;
        case 2:  // the default stream
            twice_kernel<<<blocks(n), kThreads>>>(y, x, n);
            break;
        case 3:  // nothing is launched
            break;
        case 4:  // more threads than a block may have, unchecked
            twice_kernel<<<blocks(n), 2048, 0, stream>>>(y, x, n);
            break;
        case 5:  // more shared memory than a block gets without asking, unchecked
            twice_kernel<<<blocks(n), kThreads, 200 * 1024, stream>>>(y, x, n);
            break;
        case 6:  // far outside of any allocation
            far_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            break;
        case 7:  // the same, on the third call only
            if (calls == 3)
                far_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            else
                twice_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            break;
        case 8:  // a failed assertion on the device
            assert_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            break;
        case 9:  // the last block is missing
            twice_kernel<<<blocks(n) - 1, kThreads, 0, stream>>>(y, x, n);
            break;
        case 10:  // sixteen elements behind the input are zeroed
            past_end_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            break;
        case 11:  // a host thread launches later, on a stream of its own
            std::thread([=] {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                twice_kernel<<<blocks(n), kThreads, 0, own_stream()>>>(y, x, n);
            }).detach();
            break;
        case 12:  // busy for half a minute
            spin_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n, int64_t{30} * 1000 * 1000 * 1000);
            break;
        case 13: {  // right, with the input pinned in the L2 cache across calls
            cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 32 << 20);
            cudaStreamAttrValue window = {};
            window.accessPolicyWindow.base_ptr = x;
            window.accessPolicyWindow.num_bytes = static_cast<size_t>(n) * sizeof(float);
            window.accessPolicyWindow.hitRatio = 1.0f;
            window.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
            window.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
            cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &window);
            twice_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
            break;
        }
        default:  // right; 14 lets the binding take what is not contiguous
            twice_kernel<<<blocks(n), kThreads, 0, stream>>>(y, x, n);
    }
}

// y = x byte for byte; `truncated` counts the elements in an int, as much code does.
extern "C" void copy_launcher(uint8_t* y, const uint8_t* x, int64_t n, int truncated, cudaStream_t stream) {
    const int64_t count = truncated ? static_cast<int64_t>(static_cast<int32_t>(n)) : n;
    copy_kernel<<<2048, kThreads, 0, stream>>>(y, x, count);
}
