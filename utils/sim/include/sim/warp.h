// Barriers, fences and warp operations. Every one takes its place in the source by default argument, so that a thread
// stuck in it, or a mask that is wrong, is told by line.
#pragma once

#include <sim/core.h>

#include <cstring>

namespace sim {

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
T shuffle(u32 mask, T value, int argument, int width, const char* file, int line) {
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

inline void __syncthreads(SIM_SITE) {
    sim::barrier(0, 0, false, true, true, SIM_HERE);
}
inline int __syncthreads_count(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).count);
}
inline int __syncthreads_and(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).all);
}
inline int __syncthreads_or(int predicate, SIM_SITE) {
    return static_cast<int>(sim::barrier(0, 0, predicate != 0, true, true, SIM_HERE).any);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SIM_SITE) {
    sim::exchange(mask, 0, sim::WarpKind::SYNC, SIM_HERE);
}

inline void __threadfence() {
    sim::fence_device();
    sim::breathe();
}
inline void __threadfence_block() {
    sim::breathe();
}
inline void __threadfence_system() {
    sim::fence_device();
    sim::breathe();
}
inline void __nanosleep(unsigned) {
    if (sim::block) sim::yield_spin();
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::INDEX>(mask, value, source, width, SIM_HERE);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::UP>(mask, value, static_cast<int>(delta), width, SIM_HERE);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::DOWN>(mask, value, static_cast<int>(delta), width, SIM_HERE);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, SIM_SITE) {
    return sim::shuffle<sim::Shuffle::XOR>(mask, value, lanes, width, SIM_HERE);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, SIM_SITE) {
    return sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE).bits;
}
inline int __any_sync(unsigned mask, int predicate, SIM_SITE) {
    return sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE).bits != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIM_SITE) {
    const sim::Slot& slot = sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE);
    return slot.bits == slot.lanes;
}
inline int __uni_sync(unsigned mask, int predicate, SIM_SITE) {
    const sim::Slot& slot = sim::exchange(mask, predicate != 0, sim::WarpKind::VOTE, SIM_HERE);
    return slot.bits == slot.lanes || slot.bits == 0;
}
inline unsigned __activemask(SIM_SITE) {
    return sim::active_lanes(SIM_HERE);
}

template <class T>
unsigned __match_any_sync(unsigned mask, T value, SIM_SITE) {
    const sim::u64 mine = sim::to_bits(value);
    const sim::Slot& slot = sim::exchange(mask, mine, sim::WarpKind::MATCH, SIM_HERE);
    unsigned same = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((slot.lanes >> lane & 1) && slot.value[lane] == mine) same |= 1u << lane;
    return same;
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate, SIM_SITE) {
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
T reduce(u32 mask, T value, F combine, const char* file, int line) {
    const Slot& slot = exchange(mask, to_bits(value), WarpKind::REDUCE, file, line);
    u32 left = slot.lanes;
    T result = from_bits<T>(slot.value[__builtin_ctz(left)]);
    while (left &= left - 1) result = combine(result, from_bits<T>(slot.value[__builtin_ctz(left)]));
    return result;
}
}  // namespace sim

#define SIM_REDUCE(NAME, T, EXPRESSION)                                                      \
    inline T NAME(unsigned mask, T value, SIM_SITE) {                                        \
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
