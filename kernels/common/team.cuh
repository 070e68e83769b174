// Teams: segments of a few million floats held on chip by many blocks at once, one per SM, so that a statistic over a
// segment and its use cost one read of memory instead of two.
//
// Each block of a team owns a slice of 32768 floats (128 KB) of every segment its team works on. Slices arrive by
// cp.async in chunks of 8 KB in a ring of 28 chunks (224 KB of shared memory): 16 hold the current slice while it waits
// for the team's statistic, 12 already receive the next one, so memory stays busy through the wait. Of every chunk a
// thread copies, reads and refills the same 16 bytes: the ring needs no barrier.
//
// Team members wait for each other through a counter in global memory. Hence all blocks of the grid must be resident:
// launch with cudaLaunchCooperativeKernel, one block per SM at most.
#pragma once

#include <cuda_runtime.h>

#include "cp_async.cuh"
#include "moments.cuh"

namespace kernels {

constexpr int kTeamThreads = 512;
constexpr int kChunkVectors = kTeamThreads;  // float4's per chunk: one per thread
constexpr int kSliceChunks = 16;
constexpr int kSliceVectors = kSliceChunks * kChunkVectors;
constexpr int kSliceFloats = 4 * kSliceVectors;  // 32768
constexpr int kRingChunks = 28;
constexpr int kRingBytes =
    kRingChunks * kChunkVectors * static_cast<int>(sizeof(float4));  // 229376 of 232448 there are
constexpr int kMaxTeamBlocks = 256;

// What the teams share in global memory. `arrived` must be zero when the kernel starts.
struct TeamBoard {
    unsigned arrived[kMaxTeamBlocks];  // per team: blocks that have posted, over all segments
    float2 posted[2][kMaxTeamBlocks];  // per block: (mean, deviation) of its slice; segments alternate
};

// The stream of slices of one block. The k-th segment of the team uses chunks 16 k .. 16 k + 15 of the stream.
class SliceRing {
  public:
    // `ring`: kRingBytes of shared memory. `policy`: an L2 eviction policy for the copies.
    __device__ __forceinline__ SliceRing(float4* ring, unsigned long long policy)
        : mine_(ring + threadIdx.x), policy_(policy) {}

    // Starts the copy of the next chunk of the stream (nothing where source is null). Call it once per chunk in order,
    // and keep the pace: kRingChunks ahead at first, then one refill per chunk taken.
    __device__ __forceinline__ void refill(const float4* source) {
        if (source != nullptr) {
            asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;\n" ::"r"(
                             shared_address(mine_ + write_ * kChunkVectors)),
                         "l"(source), "l"(policy_)
                         : "memory");
        }
        cp_async_commit();
        write_ = write_ + 1 == kRingChunks ? 0 : write_ + 1;
    }

    // Waits for the whole current slice: all but the 12 chunks that belong to the next.
    __device__ __forceinline__ void wait_slice() const { cp_async_wait<kRingChunks - kSliceChunks>(); }

    // This thread's 16 bytes of the current slice's chunk.
    __device__ __forceinline__ float4 get(int chunk) const {
        const int slot = read_ + chunk;
        return mine_[(slot >= kRingChunks ? slot - kRingChunks : slot) * kChunkVectors];
    }

    __device__ __forceinline__ void next_slice() {
        read_ += kSliceChunks;
        if (read_ >= kRingChunks) read_ -= kRingChunks;
    }

  private:
    float4* mine_;
    unsigned long long policy_;
    int read_ = 0;
    int write_ = 0;
};

// Data that passes through L2 once, and data worth keeping there.
__device__ __forceinline__ unsigned long long evict_first_policy() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ unsigned long long evict_last_policy() {
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;\n" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ float4 load_with_policy(const float4* pointer, unsigned long long policy) {
    float4 value;
    asm volatile("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;\n"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "l"(pointer), "l"(policy));
    return value;
}

// Moments of this block's current slice; in every lane of warp 0.
__device__ __forceinline__ Moments slice_moments(const SliceRing& ring, Moments* partial) {
    ShiftedSums sums;
    sums.shift = ring.get(0).x;
#pragma unroll
    for (int chunk = 0; chunk < kSliceChunks; ++chunk) {
        const float4 value = ring.get(chunk);
        sums.add(value.x);
        sums.add(value.y);
        sums.add(value.z);
        sums.add(value.w);
    }
    return block_merge<kTeamThreads>(sums.moments(4.f * kSliceChunks), partial);
}

// Posts the moments of this block's slice for segment number `turn` (0, 1, ... in the order the team takes them).
// Called by warp 0.
__device__ __forceinline__ void post_moments(TeamBoard* board, int team, int turn, Moments m) {
    if (threadIdx.x == 0) {
        __stcg(&board->posted[turn % 2][blockIdx.x], make_float2(m.mean, m.deviation));
        __threadfence();  // the post is visible before the count
        atomicAdd(&board->arrived[team], 1u);
    }
}

// Waits for the whole team's posts for segment number `turn` and merges them, in the same order everywhere. Called by
// warp 0; the result is in each of its lanes. The post of turn + 2 overwrites that of `turn`: a block makes it only
// after it has seen all posts of turn + 1, which others make after they have read `turn`.
__device__ __forceinline__ Moments await_moments(TeamBoard* board, int team, int team_blocks, int turn) {
    const unsigned target = static_cast<unsigned>(turn + 1) * static_cast<unsigned>(team_blocks);
    if (threadIdx.x == 0) {
        const volatile unsigned* arrived = &board->arrived[team];
        while (*arrived < target) {
        }
        __threadfence();  // the posts are read after the count
    }
    __syncwarp();
    Moments m;
    for (int block = threadIdx.x; block < team_blocks; block += kWarpSize) {
        const float2 post = __ldcg(&board->posted[turn % 2][team * team_blocks + block]);
        m = merge(m, Moments{static_cast<float>(kSliceFloats), post.x, post.y});
    }
    return warp_merge(m);
}

}  // namespace kernels
