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
// Four threads poll, each in its own way, for an arrival that never comes; the others wait for them.
__global__ void polls_in_vain(int* p) {
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar)), t = threadIdx.x;
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(at) : "memory");
    __syncthreads();
    if (t == 1) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
    unsigned done = t > 3;
    while (!done) {
        asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(at)
                     : "memory");
        if (t == 1) __nanosleep(20);
        if (t == 2) done = __ballot_sync(4u, done != 0);
    }
    __syncthreads();
    p[t] = 1;
}
__global__ void tensor_copy(int* p) {
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%0, {%1}], [%2];" ::"l"(p), "r"(0), "r"(0));
}
__global__ void __cluster_dims__(2, 1, 1) remote_mbarrier(int* p) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(0), "r"(1));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}
__global__ void __cluster_dims__(2, 1, 1) remote_copy(int* p) {
    __shared__ __align__(16) int s[4];
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(static_cast<unsigned>(__cvta_generic_to_shared(s))), "r"((blockIdx.x + 1) % 2));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];" ::"r"(there),
                 "l"(p), "r"(at)
                 : "memory");
}
// The one that must arrive waits for the cluster, whose other block waits for its own mbarrier.
__global__ void __cluster_dims__(2, 1, 1) mbarrier_in_a_cluster(int* p) {
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    __syncthreads();
    if (threadIdx.x == 1) {
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
    } else {
        asm volatile(
            "{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra W;\n}" ::"r"(at)
            : "memory");
        asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    }
}
__global__ void too_many_arrivals(int* p) {
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 6;" ::"r"(at) : "memory");
    __syncthreads();
    if (threadIdx.x < 4) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 4;" ::"r"(at) : "memory");
    p[threadIdx.x] = 1;
}
__global__ void overwritten_mbarrier(int* p) {
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
        bar = 0;
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 1;" ::"r"(at) : "memory");
    }
    p[threadIdx.x] = 1;
}
// No thread waits for an mbarrier for ever here: those that look at it go on without it after a while.
__global__ void looks_and_goes_on(int* p) {
    __shared__ unsigned long long bar;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&bar));
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    __syncthreads();
    unsigned done = 0;
    for (int i = 0; i < 3 && !done; ++i)
        asm volatile(
            "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0, %2;\nselp.u32 %0, 1, 0, p;\n}"
            : "=r"(done)
            : "r"(at), "r"(1000)
            : "memory");
    __syncthreads();
    p[threadIdx.x] = static_cast<int>(threadIdx.x + 1 + done);
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
RUN(polls_in_vain, 64, p)
RUN(tensor_copy, 1, p)
RUN_BLOCKS(remote_mbarrier, 2, 32, p)
RUN_BLOCKS(remote_copy, 2, 1, p)
RUN_BLOCKS(mbarrier_in_a_cluster, 2, 2, p)
RUN(too_many_arrivals, 32, p)
RUN(overwritten_mbarrier, 32, p)
RUN(looks_and_goes_on, 64, p)
RUN(good, 64, p)
