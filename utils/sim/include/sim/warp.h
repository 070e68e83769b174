// Barriers, fences and warp operations. Every one takes its place in the source by default argument, so that a thread
// stuck in it, or a mask that is wrong, is told by line.
#pragma once

#include <sim/core.h>

#include <cstring>

namespace sim {

// Whether waits may be made in line. The checking modes look at every one of them.
#if defined(__x86_64__) && SIM_MODE == 0
constexpr bool IN_LINE = true;
#else
constexpr bool IN_LINE = false;
#endif

// From a thread that has said what it waits for to the lowest ready lane of its warp; returns when the thread goes on.
SIM_INLINE void hand_over(Block* b, Warp& warp, u32 id, Wait kind, u32 mask, const char* file, int line) {
    Thread& me = b->threads[id];
    me.wait = kind;
    me.mask = mask;
    me.file = file;
    me.line = line;
    const u32 next = (id & ~31u) | static_cast<u32>(__builtin_ctz(warp.ready));
    warp.ready &= warp.ready - 1;
    const uint3 coordinates = threadIdx;
    switch_context(&me.context, &b->threads[next].context);
    b->current = id;
    b->spin = 0;
    threadIdx = coordinates;
}

// One step of a warp operation: waits until all lanes of `mask` have come; what they brought. For values wider than 8
// bytes each lane brings a pointer, which the others may follow until the lanes meet again.
SIM_INLINE const Slot& exchange(u32 mask, u64 value, WarpKind kind, const char* file, int line) {
    if constexpr (IN_LINE) {
        Block* b = block;
        const u32 id = b->current, lane = id & 31u;
        Warp& warp = b->warps[id >> 5];
        WarpOp* op = warp.op;
        if (__builtin_expect(op != nullptr && warp.ready && op->mask == mask && op->arrived && op->kind == kind &&
                                 (mask >> lane & 1u),
                             1)) {
            const u32 arrived = op->arrived | 1u << lane;
            if (__builtin_expect((op->need & ~arrived) != 0, 1)) {
                op->arrived = arrived;
                Slot& slot = op->slot[op->phase];
                slot.value[lane] = value;
                slot.bits |= static_cast<u32>(value != 0) << lane;
                hand_over(b, warp, id, Wait::WARP, mask, file, line);
                return slot;
            }
        }
    }
    return exchange_slow(mask, value, kind, file, line);
}

// `whole`: __syncthreads and its kind; else a named barrier of `expected` threads. Without `wait` the thread arrives
// and goes on, and the result means nothing.
SIM_INLINE const BarrierResult& barrier(u32 id, u32 expected, bool value, bool wait, bool whole, const char* file,
                                        int line) {
    if constexpr (IN_LINE) {
        Block* b = block;
        const u32 me = b->current, w = me >> 5;
        Warp& warp = b->warps[w];
        Barrier& bar = b->barriers[id & 15];
        if (__builtin_expect(whole && wait && !b->slow && warp.ready && bar.whole && bar.line == line &&
                                 bar.file == file && bar.arrived + 1 < bar.need,
                             1)) {
            ++bar.arrived;
            bar.count += value;
            bar.waiting[w] |= 1u << (me & 31u);
            const BarrierResult& result = bar.result[bar.phase];
            hand_over(b, warp, me, Wait::BARRIER, id & 15, file, line);
            return result;
        }
    }
    return barrier_slow(id, expected, value, wait, whole, file, line);
}

template <class T>
u64 to_bits(T value) {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
    u64 bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}
template <class T>
T from_bits(u64 bits) {
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
    return value;
}

enum class Shuffle { INDEX, UP, DOWN, XOR };

// The lane that a shuffle reads, by the PTX rule: segments of `width` lanes; outside the segment a lane reads itself.
template <Shuffle K>
inline u32 shuffle_source(u32 lane, int argument, int width) {
    const int segment = static_cast<int>(lane) & ~(width - 1);
    int source;
    if constexpr (K == Shuffle::INDEX) source = segment | (argument & (width - 1));
    if constexpr (K == Shuffle::UP) {
        source = static_cast<int>(lane) - argument;
        if (source < segment) source = static_cast<int>(lane);
    }
    if constexpr (K == Shuffle::DOWN) {
        source = static_cast<int>(lane) + argument;
        if (source > (segment | (width - 1))) source = static_cast<int>(lane);
    }
    if constexpr (K == Shuffle::XOR) {
        source = static_cast<int>(lane) ^ argument;
        if (source > (segment | (width - 1))) source = static_cast<int>(lane);
    }
    return static_cast<u32>(source) & 31u;
}

template <Shuffle K, class T>
SIM_INLINE T shuffle(u32 mask, T value, int argument, int width, const char* file, int line) {
    const u32 lane = lane_id();
    const Slot& slot = exchange(mask, to_bits(value), WarpKind::SHUFFLE, file, line);
    const u32 source = shuffle_source<K>(lane, argument, width);
    if (__builtin_expect(!(slot.lanes >> source & 1), 0)) {
        complain("inactive_lane", "the shuffle reads a lane that takes no part in it: its value is undefined", file,
                 line);
        return from_bits<T>(~0ull);
    }
    return from_bits<T>(slot.value[source]);
}

}  // namespace sim

SIM_INLINE void __syncthreads(SIM_SITE) {
    sim::barrier(0, 0, false, true, true, SIM_HERE);
}
SIM_INLINE int __syncthreads_count(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).count);
}
SIM_INLINE int __syncthreads_and(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).all);
}
SIM_INLINE int __syncthreads_or(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).any);
}
SIM_INLINE void __syncwarp(unsigned mask = 0xffffffffu, SIM_SITE) {
    sim::exchange(mask, 0, sim::WarpKind::SYNC, SIM_HERE);
}

SIM_INLINE void __threadfence() {
    sim::fence_device();
    sim::breathe();
}
SIM_INLINE void __threadfence_block() {
    sim::breathe();
}
SIM_INLINE void __threadfence_system() {
    sim::fence_device();
    sim::breathe();
}
SIM_INLINE void __nanosleep(unsigned) {
    if (sim::block) sim::yield_spin();
}

template <class T>
SIM_INLINE T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::INDEX>(mask, value, source, width, SIM_HERE);
}
template <class T>
SIM_INLINE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::UP>(mask, value, static_cast<int>(delta), width, SIM_HERE);
}
template <class T>
SIM_INLINE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::DOWN>(mask, value, static_cast<int>(delta), width, SIM_HERE);
}
template <class T>
SIM_INLINE T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::XOR>(mask, value, lanes, width, SIM_HERE);
}

SIM_INLINE unsigned __ballot_sync(unsigned mask, int predicate, SIM_SITE) {
    return sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE).bits;
}
SIM_INLINE int __any_sync(unsigned mask, int predicate, SIM_SITE) {
    return sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE).bits != 0;
}
SIM_INLINE int __all_sync(unsigned mask, int predicate, SIM_SITE) {
    const sim::Slot& slot = sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE);
    return slot.bits == slot.lanes;
}
SIM_INLINE int __uni_sync(unsigned mask, int predicate, SIM_SITE) {
    const sim::Slot& slot = sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE);
    return slot.bits == slot.lanes || slot.bits == 0;
}
SIM_INLINE unsigned __activemask(SIM_SITE) {
    return sim::active_lanes(SIM_HERE);
}

template <class T>
SIM_INLINE unsigned __match_any_sync(unsigned mask, T value, SIM_SITE) {
    const sim::u64 mine = sim::to_bits(value);
    const sim::Slot& slot = sim::exchange(mask, mine, sim::WarpKind::MATCH, SIM_HERE);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((slot.lanes >> lane & 1) && slot.value[lane] == mine) same |= 1u << lane;
    return same;
}
template <class T>
SIM_INLINE unsigned __match_all_sync(unsigned mask, T value, int* predicate, SIM_SITE) {
    const sim::u64 mine = sim::to_bits(value);
    const sim::Slot& slot = sim::exchange(mask, mine, sim::WarpKind::MATCH, SIM_HERE);
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((slot.lanes >> lane & 1) && slot.value[lane] != mine) {
            *predicate = 0;
            return 0;
        }
    *predicate = 1;
    return slot.lanes;
}

namespace sim {
template <class T, class F>
SIM_INLINE T reduce(u32 mask, T value, F combine, const char* file, int line) {
    const Slot& slot = exchange(mask, to_bits(value), WarpKind::REDUCE, file, line);
    u32 left = slot.lanes;
    T result = from_bits<T>(slot.value[__builtin_ctz(left)]);
    while (left &= left - 1) result = combine(result, from_bits<T>(slot.value[__builtin_ctz(left)]));
    return result;
}
}  // namespace sim

#define SIM_REDUCE(NAME, T, EXPRESSION)                                                      \
    SIM_INLINE T NAME(unsigned mask, T value, SIM_SITE) {                                    \
        return sim::reduce(mask, value, [](T a, T b) -> T { return EXPRESSION; }, SIM_HERE); \
    }
SIM_REDUCE(__reduce_add_sync, unsigned, a + b)
SIM_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
SIM_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
SIM_REDUCE(__reduce_add_sync, int, static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)))
SIM_REDUCE(__reduce_min_sync, int, a < b ? a : b)
SIM_REDUCE(__reduce_max_sync, int, a > b ? a : b)
SIM_REDUCE(__reduce_and_sync, unsigned, a& b)
SIM_REDUCE(__reduce_or_sync, unsigned, a | b)
SIM_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#undef SIM_REDUCE

// ---- clusters (sm_90's intrinsics)

SIM_INLINE void __cluster_barrier_arrive(SIM_SITE) {
    sim::wide_arrive(sim::Wide::CLUSTER, true, SIM_HERE);
}
SIM_INLINE void __cluster_barrier_arrive_relaxed(SIM_SITE) {
    sim::wide_arrive(sim::Wide::CLUSTER, false, SIM_HERE);
}
SIM_INLINE void __cluster_barrier_wait(SIM_SITE) {
    sim::wide_wait(sim::Wide::CLUSTER, SIM_HERE);
}
inline void* __cluster_map_shared_rank(const void* shared, unsigned rank, SIM_SITE) {
    return sim::map_shared(shared, rank, SIM_HERE);
}
inline unsigned __cluster_query_shared_rank(const void* shared) {
    return sim::shared_rank(shared);
}
inline unsigned __clusterRelativeBlockRank() {
    return sim::cluster_rank();
}
inline unsigned __clusterSizeInBlocks() {
    const dim3 shape = sim::cluster_shape();
    return shape.x * shape.y * shape.z;
}
inline dim3 __clusterRelativeBlockIdx() {
    const uint3 place = sim::cluster_place();
    return dim3(place.x, place.y, place.z);
}
inline dim3 __clusterDim() {
    return sim::cluster_shape();
}
inline dim3 __clusterIdx() {
    const dim3 shape = sim::cluster_shape();
    return dim3(blockIdx.x / shape.x, blockIdx.y / shape.y, blockIdx.z / shape.z);
}
inline dim3 __clusterGridDimInClusters() {
    const dim3 shape = sim::cluster_shape();
    return dim3(gridDim.x / shape.x, gridDim.y / shape.y, gridDim.z / shape.z);
}
