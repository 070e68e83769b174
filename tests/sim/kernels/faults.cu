// Kernels that must end with a clear fault, never with a result, and never take the process with them.
#include <cuda_runtime.h>

#include <cstdio>
#include <exception>

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
__global__ void __cluster_dims__(2, 1, 1) half_a_cluster(int* p) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    if (threadIdx.x == 5) asm volatile("bar.sync 1, 64;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    p[0] = 1;
}
__global__ void __cluster_dims__(2, 1, 1) no_such_rank(int* p) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(0), "r"(2));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(there), "r"(1) : "memory");
    p[0] = 1;
}
__global__ void __cluster_dims__(3, 1, 1) part_of_a_cluster(int* p) {
    p[0] = 1;
}
__global__ void good(int* p) {
    p[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
}

#define RUN(NAME, THREADS, ...) RUN_BLOCKS(NAME, 1, THREADS, __VA_ARGS__)
#define RUN_BLOCKS(NAME, BLOCKS, THREADS, ...)                     \
    extern "C" const char* NAME##_fault(int* p) {                  \
        static char message[600];                                  \
        try {                                                      \
            NAME<<<BLOCKS, THREADS>>>(__VA_ARGS__);                \
        } catch (const std::exception& error) {                    \
            snprintf(message, sizeof message, "%s", error.what()); \
            return message;                                        \
        }                                                          \
        return "";                                                 \
    }
RUN(null_pointer, 32, nullptr)
RUN(divide, 32, p, 0)
RUN(overflow_stack, 1, p)
RUN(wgmma, 32, p)
RUN(guarded_wgmma, 32, p, 0)
RUN(trap, 32, p)
RUN(bounded_launch, 96, p)
RUN_BLOCKS(half_a_cluster, 2, 32, p)
RUN_BLOCKS(no_such_rank, 2, 32, p)
RUN_BLOCKS(part_of_a_cluster, 2, 32, p)
RUN(good, 64, p)
