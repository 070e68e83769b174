// Kernels with one planted bug each, and beside each its clean twin. BUG marks the line that must be reported.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cassert>

namespace cg = cooperative_groups;

// A kernel, and the launcher that tests call: (input, output, n) as float, one to four blocks.
#define LAUNCHER(NAME, GRID, BLOCK, SHARED)                         \
    extern "C" int NAME##_run(const float* in, float* out, int n) { \
        NAME<<<GRID, BLOCK, SHARED>>>(in, out, n);                  \
        return static_cast<int>(cudaGetLastError());                \
    }

// ---- missing __syncthreads between write and read of a neighbour's element
__global__ void missing_barrier(const float* in, float* out, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = in[t];
    out[t] = s[(t + 37) % 256];  // BUG race
}
LAUNCHER(missing_barrier, 1, 256, 0)
__global__ void missing_barrier_clean(const float* in, float* out, int n) {
    __shared__ float s[256];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[(t + 37) % 256];
}
LAUNCHER(missing_barrier_clean, 1, 256, 0)

// ---- the barrier at the end of a loop that reuses shared memory is missing
__global__ void missing_loop_barrier(const float* in, float* out, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    float sum = 0;
    for (int base = 0; base < n; base += 128) {
        s[t] = in[base + t];  // BUG race
        __syncthreads();
        sum += s[127 - t];
    }
    out[t] = sum;
}
LAUNCHER(missing_loop_barrier, 1, 128, 0)
__global__ void missing_loop_barrier_clean(const float* in, float* out, int n) {
    __shared__ float s[128];
    const int t = threadIdx.x;
    float sum = 0;
    for (int base = 0; base < n; base += 128) {
        s[t] = in[base + t];
        __syncthreads();
        sum += s[127 - t];
        __syncthreads();
    }
    out[t] = sum;
}
LAUNCHER(missing_loop_barrier_clean, 1, 128, 0)

// ---- a warp-level tree through shared memory without __syncwarp
__global__ void missing_syncwarp(const float* in, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    s[t + 32] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        const float v = s[t + d];  // BUG race
        s[t] += v;
        __syncwarp();
    }
    out[t] = s[t];
}
LAUNCHER(missing_syncwarp, 1, 32, 0)
__global__ void missing_syncwarp_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    s[t + 32] = 0;
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
        const float v = s[t + d];
        __syncwarp();
        s[t] += v;
        __syncwarp();
    }
    out[t] = s[t];
}
LAUNCHER(missing_syncwarp_clean, 1, 32, 0)

// ---- two threads write different values to one element
__global__ void write_write(const float* in, float* out, int n) {
    __shared__ float s[32];
    const int t = threadIdx.x;
    s[t / 2] = in[t];  // BUG race
    __syncthreads();
    out[t] = s[t / 2];
}
LAUNCHER(write_write, 1, 64, 0)
__global__ void write_write_clean(const float* in, float* out, int n) {
    __shared__ float s[32];
    const int t = threadIdx.x;
    if (t % 2 == 1) s[t / 2] = in[t];
    __syncthreads();
    out[t] = s[t / 2];
}
LAUNCHER(write_write_clean, 1, 64, 0)

// ---- a histogram without atomics
__global__ void plain_histogram(const float* in, float* out, int n) {
    __shared__ int bins[8];
    const int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    bins[t % 8] += 1;  // BUG race
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
LAUNCHER(plain_histogram, 1, 128, 0)
__global__ void plain_histogram_clean(const float* in, float* out, int n) {
    __shared__ int bins[8];
    const int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[t % 8], 1);
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
LAUNCHER(plain_histogram_clean, 1, 128, 0)

// ---- blocks add to one element of device memory without atomics
__global__ void global_race(const float* in, float* out, int n) {
    if (threadIdx.x == 0) out[0] += in[blockIdx.x];  // BUG race
}
LAUNCHER(global_race, 4, 32, 0)
__global__ void global_race_clean(const float* in, float* out, int n) {
    if (threadIdx.x == 0) atomicAdd(&out[0], in[blockIdx.x]);
}
LAUNCHER(global_race_clean, 4, 32, 0)

// ---- the last block sums without a fence before the count
__device__ unsigned arrived;
__global__ void missing_fence(const float* in, float* out, int n) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = in[blockIdx.x];
        last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += out[1 + b];  // BUG race
        out[0] = sum;
        arrived = 0;
    }
}
LAUNCHER(missing_fence, 4, 32, 0)
__device__ unsigned arrived_clean;
__global__ void missing_fence_clean(const float* in, float* out, int n) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        out[1 + blockIdx.x] = in[blockIdx.x];
        __threadfence();
        last = atomicAdd(&arrived_clean, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        float sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += out[1 + b];
        out[0] = sum;
        arrived_clean = 0;
    }
}
LAUNCHER(missing_fence_clean, 4, 32, 0)

// ---- one element past the end of the input
__global__ void off_by_one_read(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i + 1];  // BUG out_of_bounds
}
LAUNCHER(off_by_one_read, 4, 64, 0)
__global__ void off_by_one_read_clean(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n - 1) out[i] = in[i + 1];
}
LAUNCHER(off_by_one_read_clean, 4, 64, 0)

// ---- <= instead of <
__global__ void off_by_one_write(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n) out[i] = 1.0f;  // BUG out_of_bounds
}
LAUNCHER(off_by_one_write, 5, 64, 0)
__global__ void off_by_one_write_clean(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 1.0f;
}
LAUNCHER(off_by_one_write_clean, 5, 64, 0)

// ---- before the start
__global__ void before_start(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    out[i] = in[i - 1];  // BUG out_of_bounds
}
LAUNCHER(before_start, 1, 64, 0)
__global__ void before_start_clean(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    out[i] = i ? in[i - 1] : 0.0f;
}
LAUNCHER(before_start_clean, 1, 64, 0)

// ---- a vector load over the end
__global__ void vector_tail(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    if (4 * i < n - 2) {
        const float4 v = reinterpret_cast<const float4*>(in)[i + 1];  // BUG out_of_bounds
        out[i] = v.x + v.y + v.z + v.w;
    }
}
LAUNCHER(vector_tail, 1, 64, 0)
__global__ void vector_tail_clean(const float* in, float* out, int n) {
    const int i = threadIdx.x;
    if (4 * i + 3 < n) {
        const float4 v = reinterpret_cast<const float4*>(in)[i];
        out[i] = v.x + v.y + v.z + v.w;
    }
}
LAUNCHER(vector_tail_clean, 1, 64, 0)

// ---- static shared array overrun
__global__ void shared_overflow(const float* in, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t + 1] = in[t];  // BUG out_of_bounds
    __syncthreads();
    if (t > 0) out[t] = s[t];
}
LAUNCHER(shared_overflow, 1, 64, 0)
__global__ void shared_overflow_clean(const float* in, float* out, int n) {
    __shared__ float s[65];
    const int t = threadIdx.x;
    s[t + 1] = in[t];
    __syncthreads();
    if (t > 0) out[t] = s[t];
}
LAUNCHER(shared_overflow_clean, 1, 64, 0)

// ---- less dynamic shared memory than the kernel uses
__global__ void dynamic_too_small(const float* in, float* out, int n) {
    extern __shared__ float s[];
    const int t = threadIdx.x;
    s[t] = in[t];  // BUG out_of_bounds
    __syncthreads();
    out[t] = s[t];
}
LAUNCHER(dynamic_too_small, 1, 64, 63 * sizeof(float))
__global__ void dynamic_too_small_clean(const float* in, float* out, int n) {
    extern __shared__ float s[];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[t];
}
LAUNCHER(dynamic_too_small_clean, 1, 64, 64 * sizeof(float))

// ---- an atomic past the end
__global__ void atomic_past_end(const float* in, float* out, int n) {
    atomicAdd(&out[n], 1.0f);  // BUG out_of_bounds
}
LAUNCHER(atomic_past_end, 1, 32, 0)
__global__ void atomic_past_end_clean(const float* in, float* out, int n) {
    atomicAdd(&out[n - 1], 1.0f);
}
LAUNCHER(atomic_past_end_clean, 1, 32, 0)

// ---- a padded column that nobody wrote
__global__ void uninitialised(const float* in, float* out, int n) {
    __shared__ float s[65];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[t + 1];  // BUG uninitialised_shared
}
LAUNCHER(uninitialised, 1, 64, 0)
__global__ void uninitialised_clean(const float* in, float* out, int n) {
    __shared__ float s[65];
    const int t = threadIdx.x;
    s[t] = in[t];
    if (t == 0) s[64] = 0;
    __syncthreads();
    out[t] = s[t + 1];
}
LAUNCHER(uninitialised_clean, 1, 64, 0)

// ---- an accumulator that is never set to zero
__global__ void unset_accumulator(const float* in, float* out, int n) {
    __shared__ float sum;
    atomicAdd(&sum, in[threadIdx.x]);  // BUG uninitialised_shared
    __syncthreads();
    if (threadIdx.x == 0) out[0] = sum;
}
LAUNCHER(unset_accumulator, 1, 64, 0)
__global__ void unset_accumulator_clean(const float* in, float* out, int n) {
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = sum;
}
LAUNCHER(unset_accumulator_clean, 1, 64, 0)

// ---- float4 at an address that is not a multiple of 16
__global__ void misaligned_load(const float* in, float* out, int n) {
    const float4* v = reinterpret_cast<const float4*>(in + 1);
    out[threadIdx.x] = v[threadIdx.x].x;  // BUG misaligned
}
LAUNCHER(misaligned_load, 1, 16, 0)
__global__ void misaligned_load_clean(const float* in, float* out, int n) {
    const float4* v = reinterpret_cast<const float4*>(in + 4);
    out[threadIdx.x] = v[threadIdx.x].x;
}
LAUNCHER(misaligned_load_clean, 1, 16, 0)

__global__ void misaligned_store(const float* in, float* out, int n) {
    reinterpret_cast<float2*>(out + 1)[threadIdx.x] = make_float2(1.f, 2.f);  // BUG misaligned
}
LAUNCHER(misaligned_store, 1, 16, 0)
__global__ void misaligned_store_clean(const float* in, float* out, int n) {
    reinterpret_cast<float2*>(out + 2)[threadIdx.x] = make_float2(1.f, 2.f);
}
LAUNCHER(misaligned_store_clean, 1, 16, 0)

__global__ void misaligned_ldg(const float* in, float* out, int n) {
    const float4 v = __ldg(reinterpret_cast<const float4*>(in + 2));  // BUG misaligned
    out[threadIdx.x] = v.x;
}
LAUNCHER(misaligned_ldg, 1, 16, 0)
__global__ void misaligned_ldg_clean(const float* in, float* out, int n) {
    const float4 v = __ldg(reinterpret_cast<const float4*>(in + 8));
    out[threadIdx.x] = v.x;
}
LAUNCHER(misaligned_ldg_clean, 1, 16, 0)

// ---- a barrier that half the block does not reach
__global__ void divergent_barrier(const float* in, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    if (t < 32) {
        __syncthreads();  // BUG divergent_barrier
        out[t] = s[t + 32];
    } else {
        const unsigned all = __ballot_sync(0xffffffffu, t > 40);
        __syncthreads();
        out[t] = all;
    }
}
LAUNCHER(divergent_barrier, 1, 64, 0)
__global__ void divergent_barrier_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t < 32) {
        out[t] = s[t + 32];
    } else {
        const unsigned all = __ballot_sync(0xffffffffu, t > 40);
        out[t] = all;
    }
}
LAUNCHER(divergent_barrier_clean, 1, 64, 0)

// ---- threads past the end return before the barrier
__global__ void early_exit(const float* in, float* out, int n) {
    __shared__ float s[96];
    const int t = threadIdx.x;
    if (t >= 80) return;
    s[t] = in[t];
    __syncthreads();  // BUG exit_before_barrier
    out[t] = s[79 - t];
}
LAUNCHER(early_exit, 1, 96, 0)
__global__ void early_exit_clean(const float* in, float* out, int n) {
    __shared__ float s[96];
    const int t = threadIdx.x;
    if (t < 80) s[t] = in[t];
    __syncthreads();
    if (t < 80) out[t] = s[79 - t];
}
LAUNCHER(early_exit_clean, 1, 96, 0)

// ---- half a warp shuffles with the mask of all
__global__ void wrong_shuffle_mask(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    float v = in[t];
    if (t < 16) {
        v += __shfl_down_sync(0xffffffffu, v, 8);  // BUG divergent_warp
    } else {
        __syncwarp();
    }
    out[t] = v;
}
LAUNCHER(wrong_shuffle_mask, 1, 32, 0)
__global__ void wrong_shuffle_mask_clean(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    float v = in[t];
    if (t < 16) v += __shfl_down_sync(0x0000ffffu, v, 8, 16);
    out[t] = v;
}
LAUNCHER(wrong_shuffle_mask_clean, 1, 32, 0)

// ---- a shuffle that reads a lane outside its mask
__global__ void inactive_lane(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    float v = in[t];
    if (t < 24) v += __shfl_down_sync(0x00ffffffu, v, 8);  // BUG inactive_lane
    out[t] = v;
}
LAUNCHER(inactive_lane, 1, 32, 0)
__global__ void inactive_lane_clean(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    float v = in[t];
    const float other = __shfl_down_sync(0xffffffffu, v, 8);
    if (t < 24) v += other;
    out[t] = v;
}
LAUNCHER(inactive_lane_clean, 1, 32, 0)

// ---- the caller is not in its own mask
__global__ void own_lane_missing(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    out[t] = __ballot_sync(0xfffffffeu, in[t] > 0) ? 1.0f : 0.0f;  // BUG wrong_mask
}
LAUNCHER(own_lane_missing, 1, 32, 0)
__global__ void own_lane_missing_clean(const float* in, float* out, int n) {
    const int t = threadIdx.x;
    out[t] = __ballot_sync(0xffffffffu, in[t] > 0) ? 1.0f : 0.0f;
}
LAUNCHER(own_lane_missing_clean, 1, 32, 0)

// ---- asynchronous copies that are not waited for
__global__ void missing_async_wait(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[128];
    const int t = threadIdx.x;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[4 * t]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(in + 4 * t) : "memory");
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    __syncthreads();
    out[t] = s[4 * t];  // BUG uninitialised_shared
}
LAUNCHER(missing_async_wait, 1, 32, 0)
__global__ void missing_async_wait_clean(const float* in, float* out, int n) {
    __shared__ __align__(16) float s[128];
    const int t = threadIdx.x;
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(&s[4 * t]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(in + 4 * t) : "memory");
    asm volatile("cp.async.commit_group;\n" ::: "memory");
    asm volatile("cp.async.wait_group 0;\n" ::: "memory");
    __syncthreads();
    out[t] = s[4 * t];
}
LAUNCHER(missing_async_wait_clean, 1, 32, 0)

// ---- launch limits
__global__ void fill(const float* in, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
extern "C" int too_many_threads_run(const float* in, float* out, int n) {
    fill<<<1, 1056>>>(in, out, n);  // BUG launch_limit
    return static_cast<int>(cudaGetLastError());
}
extern "C" int too_many_threads_clean_run(const float* in, float* out, int n) {
    fill<<<1, 1024>>>(in, out, n);
    return static_cast<int>(cudaGetLastError());
}
extern "C" int too_much_shared_run(const float* in, float* out, int n) {
    fill<<<1, 64, 64 * 1024>>>(in, out, n);  // BUG launch_limit
    return static_cast<int>(cudaGetLastError());
}
extern "C" int too_much_shared_clean_run(const float* in, float* out, int n) {
    fill<<<1, 64, 32 * 1024>>>(in, out, n);
    return static_cast<int>(cudaGetLastError());
}
extern "C" int empty_grid_run(const float* in, float* out, int n) {
    fill<<<n / 1000000, 64>>>(in, out, n);  // BUG launch_limit
    return static_cast<int>(cudaGetLastError());
}
extern "C" int empty_grid_clean_run(const float* in, float* out, int n) {
    fill<<<(n + 63) / 64, 64>>>(in, out, n);
    return static_cast<int>(cudaGetLastError());
}

// ---- a failed assertion and a trap
__global__ void failed_assert(const float* in, float* out, int n) {
    assert(threadIdx.x < 31);  // BUG assert
    out[threadIdx.x] = in[threadIdx.x];
}
LAUNCHER(failed_assert, 1, 32, 0)
__global__ void failed_assert_clean(const float* in, float* out, int n) {
    assert(threadIdx.x < 32);
    out[threadIdx.x] = in[threadIdx.x];
}
LAUNCHER(failed_assert_clean, 1, 32, 0)

// ---- a tile of the group is left by half of its threads
__global__ void tile_left_behind(const float* in, float* out, int n) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int t = threadIdx.x;
    float v = in[t];
    if (t % 16 < 8)
        v += tile.shfl_xor(v, 1);  // BUG divergent_warp
    else
        tile.sync();
    out[t] = v;
}
LAUNCHER(tile_left_behind, 1, 32, 0)
__global__ void tile_left_behind_clean(const float* in, float* out, int n) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    const int t = threadIdx.x;
    float v = in[t];
    const float other = tile.shfl_xor(v, 1);
    if (t % 16 < 8) v += other;
    out[t] = v;
}
LAUNCHER(tile_left_behind_clean, 1, 32, 0)

// ---- a cluster's barrier is missing before another block's shared memory is read
__global__ void __cluster_dims__(2, 1, 1) missing_cluster_sync(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t];  // BUG race
    cluster.sync();
}
LAUNCHER(missing_cluster_sync, 2, 64, 0)
__global__ void __cluster_dims__(2, 1, 1) missing_cluster_sync_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    s[t] = in[t];
    cluster.sync();
    out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t];
    cluster.sync();
}
LAUNCHER(missing_cluster_sync_clean, 2, 64, 0)

// ---- written after the thread arrived at the cluster's barrier, read after it waited there
__global__ void __cluster_dims__(2, 1, 1) write_after_arrive(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    auto token = cluster.barrier_arrive();
    s[t] = in[t];
    cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
    out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t];  // BUG race
    cluster.sync();
}
LAUNCHER(write_after_arrive, 2, 64, 0)
__global__ void __cluster_dims__(2, 1, 1) write_after_arrive_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    s[t] = in[t];
    auto token = cluster.barrier_arrive();
    const float own = in[t];
    cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
    out[blockIdx.x * 64 + t] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t] + own;
    cluster.sync();
}
LAUNCHER(write_after_arrive_clean, 2, 64, 0)

// ---- a block's shared memory is read when the block may have ended
__global__ void __cluster_dims__(2, 1, 1) block_has_ended(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    s[t] = in[t];
    cluster.sync();
    if (cluster.block_rank() == 0) return;
    for (int i = 0; i < 100; ++i) __syncthreads();
    out[t] = cluster.map_shared_rank(s, 0)[t];  // BUG out_of_bounds
}
LAUNCHER(block_has_ended, 2, 64, 0)
__global__ void __cluster_dims__(2, 1, 1) block_has_ended_clean(const float* in, float* out, int n) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x;
    s[t] = in[t];
    cluster.sync();
    if (cluster.block_rank() == 1) out[t] = cluster.map_shared_rank(s, 0)[t];
    cluster.sync();
}
LAUNCHER(block_has_ended_clean, 2, 64, 0)

// ---- a shuffle hands over a value, and orders nothing else
__global__ void shuffle_is_no_barrier(const float* in, float* out, int n) {
    __shared__ float s[32];
    const int t = threadIdx.x;
    s[t] = in[t];
    const float v = __shfl_xor_sync(0xffffffffu, in[t], 1);
    const unsigned all = __ballot_sync(0xffffffffu, v > 0);
    out[t] = s[t ^ 1] + v + all;  // BUG race
}
LAUNCHER(shuffle_is_no_barrier, 1, 32, 0)
__global__ void shuffle_is_no_barrier_clean(const float* in, float* out, int n) {
    __shared__ float s[32];
    const int t = threadIdx.x;
    s[t] = in[t];
    const float v = __shfl_xor_sync(0xffffffffu, in[t], 1);
    __syncwarp();
    out[t] = s[t ^ 1] + v;
}
LAUNCHER(shuffle_is_no_barrier_clean, 1, 32, 0)

// ---- an atomic of block scope, from several blocks at one place
__global__ void narrow_scope(const float* in, float* out, int n) {
    if (threadIdx.x == 0) atomicAdd_block(&out[0], in[blockIdx.x]);  // BUG race
}
LAUNCHER(narrow_scope, 4, 32, 0)
__global__ void narrow_scope_clean(const float* in, float* out, int n) {
    atomicAdd_block(&out[blockIdx.x], in[threadIdx.x]);
    if (threadIdx.x == 0) atomicAdd(&out[n - 1], in[blockIdx.x]);
}
LAUNCHER(narrow_scope_clean, 4, 32, 0)

// ---- atomics of two sizes at one place
__global__ void mixed_sizes(const float* in, float* out, int n) {
    if (threadIdx.x % 32 == 0) {
        if (blockIdx.x == 0)
            atomicAdd(reinterpret_cast<unsigned long long*>(out), 1ull);
        else
            atomicAdd(reinterpret_cast<unsigned*>(out), 1u);  // BUG race
    }
}
LAUNCHER(mixed_sizes, 2, 32, 0)
__global__ void mixed_sizes_clean(const float* in, float* out, int n) {
    if (threadIdx.x % 32 == 0) {
        if (blockIdx.x == 0)
            atomicAdd(reinterpret_cast<unsigned long long*>(out), 1ull);
        else
            atomicAdd(reinterpret_cast<unsigned*>(out) + 2, 1u);
    }
}
LAUNCHER(mixed_sizes_clean, 2, 32, 0)

// ---- a plain read decides whether to touch an atomic; a compare-and-swap would look again (its twin does)
__global__ void read_before_atomic(const float* in, float* out, int n) {
    int* most = reinterpret_cast<int*>(out);
    const int mine = static_cast<int>(in[threadIdx.x]);
    if (*most < mine)  // BUG race
        atomicMax(most, mine);
}
LAUNCHER(read_before_atomic, 1, 64, 0)
__global__ void read_before_atomic_clean(const float* in, float* out, int n) {
    int* most = reinterpret_cast<int*>(out);
    const int mine = static_cast<int>(in[threadIdx.x]);
    int old = *most;
    while (old < mine) {
        const int seen = atomicCAS(most, old, mine);
        if (seen == old) break;
        old = seen;
    }
}
LAUNCHER(read_before_atomic_clean, 1, 64, 0)

// ---- one value from all threads is no finding; values that differ by thread are
__global__ void values_differ(const float* in, float* out, int n) {
    __shared__ int flag;
    const int t = threadIdx.x;
    if (in[t] > 0) flag = t;  // BUG race
    __syncthreads();
    out[t] = in[0] > 100 ? flag : 0;
}
LAUNCHER(values_differ, 1, 64, 0)
__global__ void values_differ_clean(const float* in, float* out, int n) {
    __shared__ int flag;
    const int t = threadIdx.x;
    if (in[t] > 0) flag = 1;
    __syncthreads();
    out[t] = flag;
}
LAUNCHER(values_differ_clean, 1, 64, 0)

#include "planted_runs.h"  // how tests call them
