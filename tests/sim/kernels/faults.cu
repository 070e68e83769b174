// Kernels that must end with a clear fault, never with a result, and never take the process with them.
#include <cuda_runtime.h>

__global__ void null_pointer(int* p) {
    p[threadIdx.x] = 1;
}
__global__ void divide(int* p, int by) {
    p[0] = 7 / by;
}
__device__ int deep(int n, volatile int* p) {
    volatile int room[4096];
    room[n % 4096] = n;
    p[0] = room[n % 4096];
    return n == 0 ? 0 : deep(n - 1, p) + room[0];
}
__global__ void overflow_stack(int* p) {
    p[1] = deep(100000, p);
}
__global__ void wgmma(int* p) {
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
    p[0] = 1;
}
__global__ void guarded_wgmma(int* p, int yes) {
    if (yes) asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
    p[0] = 1;
}
__global__ void trap(int* p) {
    if (threadIdx.x == 5) __trap();
    p[0] = 1;
}
__global__ void __launch_bounds__(64) bounded_launch(int* p) {
    p[threadIdx.x] = 1;
}
__global__ void good(int* p) {
    p[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
}

#define RUN(NAME, THREADS, ...)                                    \
    extern "C" const char* NAME##_fault(int* p) {                  \
        static char message[600];                                  \
        try {                                                      \
            NAME<<<1, THREADS>>>(__VA_ARGS__);                     \
        } catch (const std::exception& error) {                    \
            snprintf(message, sizeof message, "%s", error.what()); \
            return message;                                        \
        }                                                          \
        return "";                                                 \
    }
#include <exception>
RUN(null_pointer, 32, nullptr)
RUN(divide, 32, p, 0)
RUN(overflow_stack, 1, p)
RUN(wgmma, 32, p)
RUN(guarded_wgmma, 32, p, 0)
RUN(trap, 32, p)
RUN(bounded_launch, 96, p)
RUN(good, 64, p)
