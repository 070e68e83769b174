// Teams: segments of many floats held on chip by many blocks at once, one per SM, so that a statistic over a segment
// and its use cost one read of memory instead of two. Here the statistic is mean and variance, the use a normalisation.
//
// Each block of a team owns one slice of every segment its team works on. Its slices form one endless stream of chunks
// (16 bytes for each thread) through a ring of 224 KB in shared memory, which three places walk along at the same pace:
//
//      normalise, store, free       moments            in flight, by cp.async
//                |                     |                        |
//        chunk   t ................. t + Lead ............ t + RingChunks
//
// So reads, sums and writes are spread evenly over the time, which is what keeps the memory busy in both directions.
// Lead is at least a slice, since a slice's moments must be known before its first value is normalised. What Lead has
// beyond a slice is the time that the blocks of a team have for telling each other their moments; what the ring has
// beyond Lead is the bytes in flight.
//
// Nobody waits for that exchange unless it is late: the data warps only drop their moments in shared memory and go on.
// Another warp of the block, the collector, gathers them and posts the slice's moments in global memory. The last block
// of the grid, the hub, has no data of its own: its warps wait for the posts of a segment's slices, merge them and post
// the segment's statistics. Two more warps of each block, the listeners, wait for those, one in the even turns, one in
// the odd, and leave them where the data warps find them when they come to the slice. Under full load a post takes
// microseconds to be seen, longer than a short slice; so several exchanges are under way at a time, and nobody who
// starts one waits for its end. Without a hub each block asks for all others' posts: 128 times the loads, by SMs whose
// way to memory is full. A thread copies, sums, normalises and refills its own 16 bytes of each chunk, so data warps
// need no barrier either.
//
// Blocks wait for each other. Hence all blocks of the grid must be resident: launch with cudaLaunchCooperativeKernel
// (launch_team does), one block per SM at most.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "check.h"
#include "cp_async.cuh"
#include "moments.cuh"

namespace kernels {

constexpr int kRingBytes = 224 << 10;  // of the 227 KB a block may have
constexpr int kMinTeamBlocks = 4;
constexpr int kMaxTeamBlocks = 160;
constexpr int kListeners = 2;
constexpr int kTurnSlots = 4;  // turns whose moments or statistics a block may hold at a time

// How a block works. Threads: of the data warps; collector and listeners come after them. SliceFloats: of a segment,
// per block. LeadFloats: from the place of the stores to that of the moments, in floats of the stream. BatchFloats: of
// a thread, taken together for the sake of independent instructions. EvictFirst: whether what is read is to leave L2
// first; it should where L2 holds something else that is read again, and costs a few per cent where it does not.
template <int Threads_, int SliceFloats_, int LeadFloats_, bool EvictFirst_, int BatchFloats_ = 4096 / Threads_>
struct TeamShape {
    static constexpr bool kEvictFirst = EvictFirst_;
    static constexpr int kThreads = Threads_;
    // Registers are dealt out to four warps at a time, so 256 threads and three warps get 168 each, like 384; there the
    // other four warps (one does nothing) hand theirs over.
    static constexpr bool kHandOver = Threads_ == 256;
    static constexpr int kServiceWarps = kHandOver ? 4 : 1 + kListeners;
    static constexpr int kBlockThreads = Threads_ + kServiceWarps * kWarpSize;
    static constexpr int kServiceRegisters = 40;
    static constexpr int kDataRegisters = 232;  // 2 x 232 + 40 = 3 x 168
    static constexpr int kWarps = Threads_ / kWarpSize;
    static constexpr int kSliceFloats = SliceFloats_;
    static constexpr int kSliceVectors = SliceFloats_ / 4;
    static constexpr int kSliceChunks = kSliceVectors / Threads_;
    static constexpr int kLead = LeadFloats_ / 4 / Threads_;
    static constexpr int kRingChunks = kRingBytes / 16 / Threads_;
    static constexpr int kBatch = BatchFloats_ / 4;
    static_assert(kSliceChunks <= kLead && kLead < kRingChunks, "no room");
    static_assert(kLead <= (kTurnSlots - 1) * kSliceChunks, "moments may not take a slot whose statistics are unread");
    static_assert(kSliceChunks % kBatch == 0 && kLead % kBatch == 0 && kRingChunks % kBatch == 0,
                  "batches must not cross the end of a slice or of the ring");
};

// ---- copies ---------------------------------------------------------------------------------------------------------

// An L2 eviction policy for data that pass through once: what is worth keeping there stays.
__device__ __forceinline__ unsigned long long evict_first_policy() {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
    return policy;
}

// setmaxnreg: a warp group's registers, down to or up to this many a thread. Where the architecture has none (it takes
// sm_90a), each warp keeps its share and the data warps spill.
template <int Registers>
__device__ __forceinline__ void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(Registers));
#endif
}

template <int Registers>
__device__ __forceinline__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(Registers));
#endif
}

// The chunks of one block in shared memory. Places are named by their distance from the oldest.
template <typename Shape>
class ChunkRing {
  public:
    // `memory`: kRingBytes of shared memory.
    __device__ __forceinline__ explicit ChunkRing(float4* memory) : mine_(memory + threadIdx.x) {}

    // Where this thread's 16 bytes lie of the first chunk of a batch; those of the others follow kThreads apart.
    __device__ __forceinline__ float4* batch(int place) const {
        const int sum = oldest_ + place;
        return mine_ + (sum >= Shape::kRingChunks ? sum - Shape::kRingChunks : sum) * Shape::kThreads;
    }

    // Starts the copy of 16 bytes to a place got from batch().
    __device__ __forceinline__ void fill(float4* place, const float4* source) {
        if constexpr (Shape::kEvictFirst) {
            asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;\n" ::"r"(shared_address(place)),
                         "l"(source), "l"(evict_first_policy())
                         : "memory");
        } else {
            cp_async_16(place, source);
        }
    }

    // The `chunks` oldest are done with and their places refilled.
    __device__ __forceinline__ void advance(int chunks) {
        oldest_ += chunks;
        if (oldest_ >= Shape::kRingChunks) oldest_ -= Shape::kRingChunks;
    }

  private:
    float4* mine_;
    int oldest_ = 0;
};

// ---- the exchange ---------------------------------------------------------------------------------------------------

// Two floats in one word, so that whoever sees it sees both: what warps and blocks tell each other. All bits are set
// until it is posted.
using Post = unsigned long long;
constexpr Post kNotPosted = ~Post{0};

__device__ __forceinline__ Post make_post(float first, float second) {
    const Post post = static_cast<Post>(__float_as_uint(second)) << 32 | __float_as_uint(first);
    return post == kNotPosted ? post & ~Post{1} : post;  // two NaNs stay NaNs
}
__device__ __forceinline__ float first_of(Post post) {
    return __uint_as_float(static_cast<unsigned>(post));
}
__device__ __forceinline__ float second_of(Post post) {
    return __uint_as_float(static_cast<unsigned>(post >> 32));
}

// Relaxed accesses: a post carries all there is to tell. Acquire and release: what was done before is done for others.
__device__ __forceinline__ Post read_post(const Post* place) {
    Post post;
    asm volatile("ld.relaxed.gpu.b64 %0, [%1];\n" : "=l"(post) : "l"(place) : "memory");
    return post;
}
__device__ __forceinline__ void write_post(Post* place, Post post) {
    asm volatile("st.relaxed.gpu.b64 [%0], %1;\n" ::"l"(place), "l"(post) : "memory");
}
__device__ __forceinline__ int read_turn_acquire(const int* place) {
    int turn;
    asm volatile("ld.acquire.cta.b32 %0, [%1];\n" : "=r"(turn) : "l"(place) : "memory");
    return turn;
}
__device__ __forceinline__ void write_turn_release(int* place, int turn) {
    asm volatile("st.release.cta.b32 [%0], %1;\n" ::"l"(place), "r"(turn) : "memory");
}

struct TeamWork {
    int segments;
    int team_blocks;  // slices per segment
    float epsilon;
    // [segments][team_blocks], the moments of each slice (mean, sum of squared deviations), then [segments], the
    // statistics of each segment (mean, 1 / sqrt(variance + epsilon)); whatever they hold at first.
    Post* posts;

    __device__ __forceinline__ Post* statistics() const { return posts + static_cast<int64_t>(segments) * team_blocks; }
};

// What the warps of a block share. Turn t uses slot t % kTurnSlots. A warp that drops the moments of turn t has read
// the statistics of turn t - 3 (see the assertion on kLead), for which its collector has taken the moments of turn
// t - 3; and whoever publishes those of turn t has seen its block's post, so all warps have read those of turn t - 4.
template <typename Shape>
struct TeamMail {
    Post moments[kTurnSlots][Shape::kWarps];  // of a warp's part of a slice: mean, sum of squared deviations
    Post statistics[kTurnSlots];              // of a segment: mean, 1 / sqrt(variance + epsilon)
    int collected;                            // turns whose moments the collector has taken
    int published[kTurnSlots];                // 1 + the turn of the slot's statistics

    __device__ __forceinline__ void clear() {
        for (int i = threadIdx.x; i < kTurnSlots * Shape::kWarps; i += Shape::kBlockThreads)
            write_post(&moments[0][0] + i, kNotPosted);
        if (threadIdx.x < kTurnSlots) published[threadIdx.x] = 0;
        if (threadIdx.x == 0) collected = 0;
    }
};

// The collector's work. `post`: that of this block in its first turn; `turn_posts`: the way to the next turn's.
template <typename Shape>
__device__ __forceinline__ void collect_moments(TeamMail<Shape>& mail, Post* post, int turn_posts, int turns) {
    constexpr float kWarpFloats = Shape::kSliceFloats / Shape::kWarps;
    const int lane = threadIdx.x % kWarpSize;
    for (int turn = 0; turn < turns; ++turn, post += turn_posts) {
        // Lanes beyond the warps repeat what another lane reads: equal parts many times over have their mean.
        Post* box = &mail.moments[turn % kTurnSlots][lane % Shape::kWarps];
        Post word;
        while ((word = read_post(box)) == kNotPosted) __nanosleep(20);
        __syncwarp();
        write_post(box, kNotPosted);
        __syncwarp();
        // Passed on by the listener to the data warps: the boxes are empty. Before the post, not to wait for its way.
        if (lane == 0) write_turn_release(&mail.collected, turn + 1);
        const EqualMoments slice = merge_equal<Shape::kWarps>(first_of(word), second_of(word), kWarpFloats);
        if (lane == 0) write_post(post, make_post(slice.mean, slice.deviation));
    }
}

// The work of a listener, for every kListeners-th turn from `first` on. `statistics`: those of the first turn's
// segment; `teams`: the way to the next turn's.
template <typename Shape>
__device__ __forceinline__ void listen(TeamMail<Shape>& mail, const Post* statistics, int teams, int first, int turns) {
    const int lane = threadIdx.x % kWarpSize;
    for (int turn = first; turn < turns; turn += kListeners) {
        // Before this block has posted its own moments, asking would only load L2.
        while (read_turn_acquire(&mail.collected) <= turn) __nanosleep(20);
        Post word;
        while ((word = read_post(statistics + static_cast<int64_t>(turn) * teams)) == kNotPosted) {
        }
        __syncwarp();
        if (lane == 0) {
            const int slot = turn % kTurnSlots;
            write_post(mail.statistics + slot, word);
            write_turn_release(mail.published + slot, turn + 1);
        }
    }
}

// The work of one of the hub's warps: every `warps`-th segment from `first` on. Lower segments have earlier turns.
template <typename Shape>
__device__ __forceinline__ void merge_posts(const TeamWork& work, int first, int warps) {
    constexpr int kPostsPerLane = kMaxTeamBlocks / kWarpSize;
    constexpr float kSliceFloats = Shape::kSliceFloats;
    const int lane = threadIdx.x % kWarpSize;
    const int members = work.team_blocks;
    for (int segment = first; segment < work.segments; segment += warps) {
        const Post* mine = work.posts + static_cast<int64_t>(segment) * members + lane;
        Post words[kPostsPerLane];
        bool missing;
        do {
#pragma unroll
            for (int i = 0; i < kPostsPerLane; ++i) {
                words[i] = 0;
                if (lane + i * kWarpSize < members) words[i] = read_post(mine + i * kWarpSize);
            }
            missing = false;
#pragma unroll
            for (int i = 0; i < kPostsPerLane; ++i) missing |= words[i] == kNotPosted;
        } while (missing);
        __syncwarp();
        // Slices are of one length, so sums of their means and deviations will do; against a mean of one of them, as
        // against any value among the data, nothing cancels.
        const float shift = __shfl_sync(kFullMask, first_of(words[0]), 0);
        float sum = 0.f;
        float deviation = 0.f;
#pragma unroll
        for (int i = 0; i < kPostsPerLane; ++i) {
            if (lane + i * kWarpSize < members) {
                const float distance = first_of(words[i]) - shift;
                sum += distance;
                deviation += fmaf(distance * distance, kSliceFloats, second_of(words[i]));
            }
        }
        sum = warp_reduce(sum, Sum{});
        deviation = warp_reduce(deviation, Sum{});
        const float count = static_cast<float>(members);
        const float distance = sum / count;
        const float variance = (deviation / kSliceFloats - sum * distance) / count;
        const float inverse_deviation = rsqrtf((variance < 0.f ? 0.f : variance) + work.epsilon);
        if (lane == 0) write_post(work.statistics() + segment, make_post(shift + distance, inverse_deviation));
    }
}

// ---- the work of one block ------------------------------------------------------------------------------------------

// output = affine((input - mean) / sqrt(variance + epsilon)) for all segments, side by side in memory; the blocks of
// the grid form as many teams as they can. `affine` has
//   start(first segment)                                 once, before all else
//   begin(next segment)                                  before the first chunk of each segment
//   apply(value, chunk, mean, inverse_deviation)         four values of this thread, at chunk `chunk` of the slice
template <typename Shape, typename Affine>
__device__ __forceinline__ void normalise_segments(float4* __restrict__ output, const float4* __restrict__ input,
                                                   const TeamWork& work, float4* ring_memory, Affine& affine) {
    constexpr int kSliceChunks = Shape::kSliceChunks;
    constexpr int kRingChunks = Shape::kRingChunks;
    constexpr int kLead = Shape::kLead;
    constexpr int kBatch = Shape::kBatch;
    constexpr int kThreads = Shape::kThreads;
    __shared__ TeamMail<Shape> mail;

    const bool hub = blockIdx.x == gridDim.x - 1;
    const int team = blockIdx.x / work.team_blocks;
    const int teams = (gridDim.x - 1) / work.team_blocks;
    const int member = blockIdx.x % work.team_blocks;
    // Segments of this team: team, team + teams, ... The hub's data warps find nothing to do; as a product, since a
    // branch that ptxas can follow costs the data warps some 30 registers.
    const int turns = (work.segments - team + teams - 1) / teams * !hub;
    const int64_t segment_vectors = static_cast<int64_t>(work.team_blocks) * Shape::kSliceVectors;
    const int64_t turn_vectors = teams * segment_vectors;
    const int64_t mine = team * segment_vectors + member * Shape::kSliceVectors + threadIdx.x;
    input += mine;
    output += mine;
    const bool service = threadIdx.x >= kThreads;

    ChunkRing<Shape> ring(ring_memory);
    if (!service) {
#pragma unroll 1  // registers are scarcer here than later, where warps have been handed more
        for (int batch = 0; batch < kRingChunks; batch += kBatch) {
            const int turn = batch / kSliceChunks;
            const float4* source = input + turn * turn_vectors + batch % kSliceChunks * kThreads;
            float4* place = ring.batch(0) + batch * kThreads;
            if (turn < turns) {
#pragma unroll
                for (int i = 0; i < kBatch; ++i) ring.fill(place + i * kThreads, source + i * kThreads);
            }
            cp_async_commit();
        }
    }
    // No block may find what an earlier kernel left in the posts. The first loads are on their way meanwhile.
    mail.clear();
    for (int turn = threadIdx.x; turn < turns; turn += Shape::kBlockThreads) {
        write_post(work.posts + (team + static_cast<int64_t>(turn) * teams) * work.team_blocks + member, kNotPosted);
    }
    for (int segment = threadIdx.x; hub && segment < work.segments; segment += Shape::kBlockThreads) {
        write_post(work.statistics() + segment, kNotPosted);
    }
    cooperative_groups::this_grid().sync();

    if (service) {
        if constexpr (Shape::kHandOver) {
            give_registers<Shape::kServiceRegisters>();
        }
        const int role = (threadIdx.x - kThreads) / kWarpSize;
        if (hub) {
            merge_posts<Shape>(work, role, Shape::kServiceWarps);
        } else if (role == 0) {
            Post* posts = work.posts + static_cast<int64_t>(team) * work.team_blocks;
            collect_moments(mail, posts + member, teams * work.team_blocks, turns);
        } else if (role <= kListeners) {
            listen(mail, work.statistics() + team, teams, role - 1, turns);
        }
        return;
    }
    if constexpr (Shape::kHandOver) {
        take_registers<Shape::kDataRegisters>();
    }
    affine.start(team);

    const int warp = threadIdx.x / kWarpSize;
    ShiftedSums sums;
    // The batch from chunk number `chunk` on, counted from the start of turn `turn`: into the moments of its slice.
    const auto sum_batch = [&](int turn, int chunk) {
        const int ahead = turn + chunk / kSliceChunks;
        if (ahead >= turns) return;
        const float4* place = ring.batch(chunk % kRingChunks);
        float4 value[kBatch];
#pragma unroll
        for (int i = 0; i < kBatch; ++i) value[i] = place[i * kThreads];
        if (chunk % kSliceChunks == 0) sums = ShiftedSums{value[0].x};
#pragma unroll
        for (int i = 0; i < kBatch; ++i) sums.add(value[i]);
        if (chunk % kSliceChunks == kSliceChunks - kBatch) {
            constexpr float kFloats = 4 * kSliceChunks;
            const Moments own = sums.moments(kFloats);
            const EqualMoments m = merge_equal<kWarpSize>(own.mean, own.deviation, kFloats);
            if (threadIdx.x % kWarpSize == 0)
                write_post(&mail.moments[ahead % kTurnSlots][warp], make_post(m.mean, m.deviation));
        }
    };
    cp_async_wait<(kRingChunks - kSliceChunks) / kBatch>();
#pragma unroll 1  // as one, all loads would go to its head, and registers run out
    for (int chunk = 0; chunk < kSliceChunks; chunk += kBatch) sum_batch(0, chunk);
    cp_async_wait<(kRingChunks - kLead) / kBatch>();
#pragma unroll 1
    for (int chunk = kSliceChunks; chunk < kLead; chunk += kBatch) sum_batch(0, chunk);

    input += (kRingChunks - 1) / kSliceChunks * turn_vectors;  // the slice that came last into the ring
    for (int turn = 0; turn < turns; ++turn) {
        affine.begin(team + (turn + 1 < turns ? turn + 1 : turn) * teams);
        const int slot = turn % kTurnSlots;
        while (read_turn_acquire(mail.published + slot) != turn + 1) {
        }
        const Post statistics = read_post(mail.statistics + slot);
        __syncwarp();
        const float mean = first_of(statistics);
        const float inverse_deviation = second_of(statistics);

#pragma unroll
        for (int chunk = 0; chunk < kSliceChunks; chunk += kBatch) {
            float4* place = ring.batch(chunk);
            float4 value[kBatch];
#pragma unroll
            for (int i = 0; i < kBatch; ++i) value[i] = place[i * kThreads];
#pragma unroll
            for (int i = 0; i < kBatch; ++i) {
                __stcs(output + (chunk + i) * kThreads, affine.apply(value[i], chunk + i, mean, inverse_deviation));
            }
            // The values are in registers, so their places are free.
            const int ahead = chunk + kRingChunks;
            if (ahead % kSliceChunks == 0) input += turn_vectors;
            if (turn + ahead / kSliceChunks < turns) {
#pragma unroll
                for (int i = 0; i < kBatch; ++i)
                    ring.fill(place + i * kThreads, input + (ahead % kSliceChunks + i) * kThreads);
            }
            cp_async_commit();
            cp_async_wait<(kRingChunks - kLead) / kBatch>();
            sum_batch(turn, chunk + kLead);
        }
        ring.advance(kSliceChunks);
        output += turn_vectors;
    }
}

// ---- on the host ----------------------------------------------------------------------------------------------------

// Blocks in a team for segments of `length` floats in slices of `slice` floats; 0 where teams cannot do it.
inline int team_blocks(int64_t length, int slice, int multiprocessors) {
    const int64_t blocks = length / slice;
    const bool possible = length % slice == 0 && blocks >= kMinTeamBlocks && blocks <= kMaxTeamBlocks;
    return possible && blocks < multiprocessors ? static_cast<int>(blocks) : 0;  // one is the hub
}

inline int64_t team_post_bytes(int64_t segments, int64_t blocks) {
    return segments * (blocks + 1) * static_cast<int64_t>(sizeof(Post));
}

inline int multiprocessor_count() {
    int device = 0;
    int multiprocessors = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    return multiprocessors;
}

// Launches a kernel that calls normalise_segments<Shape>, with as many teams as there are SMs and segments for.
// `arguments`: addresses of the kernel's arguments.
template <typename Shape, typename Kernel>
void launch_team(Kernel* kernel, const TeamWork& work, void** arguments, cudaStream_t stream) {
    const int most = (multiprocessor_count() - 1) / work.team_blocks;
    const int teams = work.segments < most ? work.segments : most;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kRingBytes));
    CUDA_CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(work.team_blocks * teams + 1),
                                           dim3(Shape::kBlockThreads), arguments, kRingBytes, stream));
}

}  // namespace kernels
