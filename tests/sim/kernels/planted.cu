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

// ---- mbarriers and bulk copies; macros, so that a finding's line is the kernel's
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

// For the tests: memory with exact bounds, and a call whose exceptions end here.
extern "C" void* sim_test_allocate(size_t bytes) {
    void* p = nullptr;
    cudaMalloc(&p, bytes);
    return p;
}
extern "C" int sim_test_call(int (*run)(const float*, float*, int), const float* in, float* out, int n) {
    cudaGetLastError();  // a fault of the run before must not count for this one
    try {
        return run(in, out, n);
    } catch (...) {
        return -1;
    }
}
// The whole of one run, for a device: copies in, launch, wait.
extern "C" int sim_test_run(int (*run)(const float*, float*, int), const float* host, int n) {
    float *in = nullptr, *out = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&in), n * sizeof(float));
    cudaMalloc(reinterpret_cast<void**>(&out), n * sizeof(float));
    cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(out, 0, n * sizeof(float));
    const int launched = run(in, out, n);
    const int finished = static_cast<int>(cudaDeviceSynchronize());
    return launched ? launched : finished;
}
