// Planted bugs of mbarriers and bulk copies (cp.async.bulk), each beside its clean twin, as in planted.cu.
#include <cuda_runtime.h>

// A kernel, and the launcher that tests call: (input, output, n) as float, one to four blocks.
#define LAUNCHER(NAME, GRID, BLOCK, SHARED)                         \
    extern "C" int NAME##_run(const float* in, float* out, int n) { \
        NAME<<<GRID, BLOCK, SHARED>>>(in, out, n);                  \
        return static_cast<int>(cudaGetLastError());                \
    }

// Macros, so that a finding's line is the kernel's.
#define SHARED_ADDRESS(P) static_cast<unsigned>(__cvta_generic_to_shared(P))
#define BAR_INIT(BAR, COUNT)                                                                                          \
    asm volatile(                                                                                                     \
        "mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(SHARED_ADDRESS(BAR)), \
        "r"(COUNT)                                                                                                    \
        : "memory")
#define BAR_ARRIVE(BAR) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(SHARED_ADDRESS(BAR)) : "memory")
#define BAR_EXPECT(BAR, BYTES)                                                                                   \
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED_ADDRESS(BAR)), "r"(BYTES) \
                 : "memory")
#define BAR_WAIT(BAR, PARITY)                                                                                 \
    asm volatile(                                                                                             \
        "{\n.reg .pred p;\nWAIT:\n"                                                                           \
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra WAIT;\n}" ::"r"(SHARED_ADDRESS(BAR)), \
        "r"(PARITY)                                                                                           \
        : "memory")
#define BULK_IN(TO, FROM, BYTES, BAR)                                                                             \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"( \
                     SHARED_ADDRESS(TO)),                                                                         \
                 "l"(FROM), "r"(BYTES), "r"(SHARED_ADDRESS(BAR))                                                  \
                 : "memory")
#define BULK_OUT(TO, FROM, BYTES)                                                                               \
    asm volatile(                                                                                               \
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\tcp.async.bulk.commit_group;" ::"l"(TO), \
        "r"(SHARED_ADDRESS(FROM)), "r"(BYTES)                                                                   \
        : "memory")
#define BULK_WAIT() asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define PROXY_FENCE() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

// ---- what a bulk copy brings is read before the wait for it
__global__ void bulk_missing_wait(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 1);
    __syncthreads();
    if (t == 0) {
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);
    }
    out[t] = s[t];  // BUG race
    BAR_WAIT(&bar, 0);
}
LAUNCHER(bulk_missing_wait, 1, 64, 0)
__global__ void bulk_missing_wait_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 1);
    __syncthreads();
    if (t == 0) {
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);
    }
    BAR_WAIT(&bar, 0);
    out[t] = s[t];
}
LAUNCHER(bulk_missing_wait_clean, 1, 64, 0)

// ---- a barrier of the block is no wait for a bulk copy; where one thread waited before it, it is enough
__global__ void bulk_barrier_only(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);
    }
    __syncthreads();
    out[t] = s[t];  // BUG uninitialised_shared
    BAR_WAIT(&bar, 0);
}
LAUNCHER(bulk_barrier_only, 1, 64, 0)
__global__ void bulk_barrier_only_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);
        BAR_WAIT(&bar, 0);
    }
    __syncthreads();
    out[t] = s[t];
}
LAUNCHER(bulk_barrier_only_clean, 1, 64, 0)

// ---- the second phase is waited for with the parity of the first
__global__ void bulk_wrong_parity(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 1);
    float sum = 0;
    for (int k = 0; k < 2; ++k) {
        __syncthreads();
        if (t == 0) {
            BAR_EXPECT(&bar, 256);
            BULK_IN(s, in + 64 * k, 256, &bar);
        }
        BAR_WAIT(&bar, 0);
        sum += s[t];  // BUG race
    }
    BAR_WAIT(&bar, 1);
    out[t] = sum;
}
LAUNCHER(bulk_wrong_parity, 1, 64, 0)
__global__ void bulk_wrong_parity_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 1);
    float sum = 0;
    for (int k = 0; k < 2; ++k) {
        __syncthreads();
        if (t == 0) {
            BAR_EXPECT(&bar, 256);
            BULK_IN(s, in + 64 * k, 256, &bar);
        }
        BAR_WAIT(&bar, k);
        sum += s[t];
    }
    out[t] = sum;
}
LAUNCHER(bulk_wrong_parity_clean, 1, 64, 0)

// ---- a stage of a ring is filled again while others may still read it
__global__ void bulk_stage_too_early(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[2][32];
    __shared__ unsigned long long full[2], empty[2];
    const int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < 2; ++i) {
            BAR_INIT(full + i, 1);
            BAR_INIT(empty + i, 32);
        }
    __syncthreads();
    if (t == 0) {
        for (int k = 0; k < 8; ++k) {
            if (k >= 4) BAR_WAIT(empty + k % 2, k / 2 % 2);  // one round behind
            BAR_EXPECT(full + k % 2, 128);
            BULK_IN(s[k % 2], in + 32 * k, 128, full + k % 2);  // BUG race
            if (k == 1) BAR_WAIT(full + 1, 0);
        }
    } else if (t >= 32) {
        float sum = 0;
        for (int k = 0; k < 8; ++k) {
            BAR_WAIT(full + k % 2, k / 2 % 2);
            sum += s[k % 2][t - 32];
            BAR_ARRIVE(empty + k % 2);
        }
        out[t] = sum;
    }
}
LAUNCHER(bulk_stage_too_early, 1, 64, 0)
__global__ void bulk_stage_too_early_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[2][32];
    __shared__ unsigned long long full[2], empty[2];
    const int t = threadIdx.x;
    if (t == 0)
        for (int i = 0; i < 2; ++i) {
            BAR_INIT(full + i, 1);
            BAR_INIT(empty + i, 32);
        }
    __syncthreads();
    if (t == 0) {
        for (int k = 0; k < 8; ++k) {
            if (k >= 2) BAR_WAIT(empty + k % 2, (k / 2 + 1) % 2);
            BAR_EXPECT(full + k % 2, 128);
            BULK_IN(s[k % 2], in + 32 * k, 128, full + k % 2);
        }
    } else if (t >= 32) {
        float sum = 0;
        for (int k = 0; k < 8; ++k) {
            BAR_WAIT(full + k % 2, k / 2 % 2);
            sum += s[k % 2][t - 32];
            BAR_ARRIVE(empty + k % 2);
        }
        out[t] = sum;
    }
}
LAUNCHER(bulk_stage_too_early_clean, 1, 64, 0)

// ---- those that read a stage arrive before they have read it
__global__ void bulk_early_arrival(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[32];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&full, 1);
        BAR_INIT(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        if (t == 0) {
            BAR_WAIT(&empty, k % 2 ^ 1);
            BAR_EXPECT(&full, 128);
            BULK_IN(s, in + 32 * k, 128, &full);
        } else if (t >= 32) {
            BAR_WAIT(&full, k % 2);
            BAR_ARRIVE(&empty);
            sum += s[t - 32];  // BUG race
        }
    }
    out[t] = sum;
}
LAUNCHER(bulk_early_arrival, 1, 64, 0)
__global__ void bulk_early_arrival_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[32];
    __shared__ unsigned long long full, empty;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&full, 1);
        BAR_INIT(&empty, 32);
    }
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        if (t == 0) {
            BAR_WAIT(&empty, k % 2 ^ 1);
            BAR_EXPECT(&full, 128);
            BULK_IN(s, in + 32 * k, 128, &full);
        } else if (t >= 32) {
            BAR_WAIT(&full, k % 2);
            sum += s[t - 32];
            BAR_ARRIVE(&empty);
        }
    }
    out[t] = sum;
}
LAUNCHER(bulk_early_arrival_clean, 1, 64, 0)

// ---- more bytes are expected than are copied
__global__ void bulk_wrong_bytes(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 240, &bar);
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);  // BUG incomplete_mbarrier
    out[t] = t < 60 ? s[t] : 0;
}
LAUNCHER(bulk_wrong_bytes, 1, 64, 0)
__global__ void bulk_wrong_bytes_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 240);
        BULK_IN(s, in, 240, &bar);
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    out[t] = t < 60 ? s[t] : 0;
}
LAUNCHER(bulk_wrong_bytes_clean, 1, 64, 0)

// ---- a bulk copy of a size that is no multiple of 16
__global__ void bulk_wrong_size(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 200);
        BULK_IN(s, in, 200, &bar);  // BUG misaligned
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    out[t] = t < 50 ? s[t] : 0;
}
LAUNCHER(bulk_wrong_size, 1, 64, 0)
__global__ void bulk_wrong_size_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 208);
        BULK_IN(s, in, 208, &bar);
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    out[t] = t < 50 ? s[t] : 0;
}
LAUNCHER(bulk_wrong_size_clean, 1, 64, 0)

// ---- a bulk copy from an address that is no multiple of 16
__global__ void bulk_misaligned(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_OUT(out + 2, s, 128);  // BUG misaligned
        BULK_WAIT();
    }
}
LAUNCHER(bulk_misaligned, 1, 64, 0)
__global__ void bulk_misaligned_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_OUT(out + 4, s, 128);
        BULK_WAIT();
    }
}
LAUNCHER(bulk_misaligned_clean, 1, 64, 0)

// ---- the last piece of a bulk copy lies beyond the input
__global__ void bulk_past_end(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in + n - 60, 256, &bar);  // BUG out_of_bounds
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    out[t] = t < 60 ? s[t] : 0;
}
LAUNCHER(bulk_past_end, 1, 64, 0)
__global__ void bulk_past_end_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 240);
        BULK_IN(s, in + n - 60, 240, &bar);
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    out[t] = t < 60 ? s[t] : 0;
}
LAUNCHER(bulk_past_end_clean, 1, 64, 0)

// ---- a bulk copy writes beyond its array in shared memory
__global__ void bulk_shared_overflow(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[60];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);  // BUG out_of_bounds
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    if (t < 60) out[t] = s[t];
}
LAUNCHER(bulk_shared_overflow, 1, 64, 0)
__global__ void bulk_shared_overflow_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) {
        BAR_INIT(&bar, 1);
        BAR_EXPECT(&bar, 256);
        BULK_IN(s, in, 256, &bar);
    }
    __syncthreads();
    BAR_WAIT(&bar, 0);
    if (t < 60) out[t] = s[t];
}
LAUNCHER(bulk_shared_overflow_clean, 1, 64, 0)

// ---- what threads wrote is copied out without a proxy fence
__global__ void bulk_missing_proxy_fence(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t == 0) {
        BULK_OUT(out, s, 256);  // BUG missing_proxy_fence
        BULK_WAIT();
    }
}
LAUNCHER(bulk_missing_proxy_fence, 1, 64, 0)
__global__ void bulk_missing_proxy_fence_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_OUT(out, s, 256);
        BULK_WAIT();
    }
}
LAUNCHER(bulk_missing_proxy_fence_clean, 1, 64, 0)

// ---- a buffer is written again while a bulk copy may still read it
__global__ void bulk_buffer_too_early(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[32];
    const int t = threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        s[t] = in[32 * k + t];  // BUG race
        PROXY_FENCE();
        __syncwarp();
        if (t == 0) BULK_OUT(out + 32 * k, s, 128);
        __syncwarp();
    }
    if (t == 0) BULK_WAIT();
}
LAUNCHER(bulk_buffer_too_early, 1, 32, 0)
__global__ void bulk_buffer_too_early_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[32];
    const int t = threadIdx.x;
    for (int k = 0; k < 2; ++k) {
        s[t] = in[32 * k + t];
        PROXY_FENCE();
        __syncwarp();
        if (t == 0) {
            BULK_OUT(out + 32 * k, s, 128);
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        }
        __syncwarp();
    }
}
LAUNCHER(bulk_buffer_too_early_clean, 1, 32, 0)

// ---- the block ends while a bulk copy may still read its shared memory
__global__ void bulk_unfinished(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) BULK_OUT(out, s, 256);  // BUG unfinished_copy
}
LAUNCHER(bulk_unfinished, 1, 64, 0)
__global__ void bulk_unfinished_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    PROXY_FENCE();
    __syncthreads();
    if (t == 0) {
        BULK_OUT(out, s, 256);
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
LAUNCHER(bulk_unfinished_clean, 1, 64, 0)

// ---- fewer arrive than the mbarrier was initialised for
__global__ void mbarrier_missing_arrival(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 64);
    __syncthreads();
    s[t] = in[t];
    if (t != 7) BAR_ARRIVE(&bar);
    BAR_WAIT(&bar, 0);  // BUG incomplete_mbarrier
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_missing_arrival, 1, 64, 0)
__global__ void mbarrier_missing_arrival_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 64);
    __syncthreads();
    s[t] = in[t];
    BAR_ARRIVE(&bar);
    BAR_WAIT(&bar, 0);
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_missing_arrival_clean, 1, 64, 0)

// ---- threads arrive that need not have seen the mbarrier initialised
__global__ void mbarrier_init_unseen(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 64);
    s[t] = in[t];
    BAR_ARRIVE(&bar);  // BUG race
    BAR_WAIT(&bar, 0);
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_init_unseen, 1, 64, 0)
__global__ void mbarrier_init_unseen_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bar;
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(&bar, 64);
    s[t] = in[t];
    __syncthreads();
    BAR_ARRIVE(&bar);
    BAR_WAIT(&bar, 0);
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_init_unseen_clean, 1, 64, 0)

// ---- an mbarrier is used that nobody initialised
__global__ void mbarrier_uninitialised(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bars[2];
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(bars, 64);
    s[t] = in[t];
    __syncthreads();
    BAR_ARRIVE(bars + 1);  // BUG invalid_mbarrier
    BAR_WAIT(bars + 1, 0);
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_uninitialised, 1, 64, 0)
__global__ void mbarrier_uninitialised_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    __shared__ unsigned long long bars[2];
    const int t = threadIdx.x;
    if (t == 0) BAR_INIT(bars + 1, 64);
    s[t] = in[t];
    __syncthreads();
    BAR_ARRIVE(bars + 1);
    BAR_WAIT(bars + 1, 0);
    out[t] = s[63 - t];
}
LAUNCHER(mbarrier_uninitialised_clean, 1, 64, 0)

#include "planted_runs.h"  // how tests call them
