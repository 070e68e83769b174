// Atomics of all types, as relaxed operations of the host's own; floating-point ones by compare and swap.
#pragma once

#include <sim/core.h>

#include <cstring>

namespace sim {

template <size_t N>
struct Word;
template <>
struct Word<1> {
    using type = u8;
};
template <>
struct Word<2> {
    using type = u16;
};
template <>
struct Word<4> {
    using type = u32;
};
template <>
struct Word<8> {
    using type = u64;
};

// In race mode the raw functions are not inlined, so their return address is the user's line.
//
// Replaces *address by change(*address) atomically; returns the old value. Others get their turn before the access is
// announced: what it sees must be what the checker saw.
template <int KIND = ATOMIC, class T, class F>
SIM_RAW T atomic_update(T* address, F change) {
    using W = typename Word<sizeof(T)>::type;
    breathe();
#if SIM_MODE == 2
    announce(address, sizeof(T), static_cast<Access>(KIND), __builtin_return_address(0));
#endif
    W* word = reinterpret_cast<W*>(address);
    W old = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T value;
        __builtin_memcpy(static_cast<void*>(&value), &old, sizeof(T));
        const T changed = change(value);
        W fresh;
        __builtin_memcpy(&fresh, &changed, sizeof(T));
        if (__atomic_compare_exchange_n(word, &old, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return value;
    }
}

// ld/st with volatile or atomic meaning: one word, and others get their turn.
template <class T>
SIM_RAW T atomic_load(const T* address) {
    using W = typename Word<sizeof(T)>::type;
    breathe();
#if SIM_MODE == 2
    announce(address, sizeof(T), static_cast<Access>(ATOMIC | LOAD), __builtin_return_address(0));
#endif
    const W word = __atomic_load_n(reinterpret_cast<const W*>(address), __ATOMIC_ACQUIRE);
    T value;
    __builtin_memcpy(static_cast<void*>(&value), &word, sizeof(T));
    return value;
}
template <class T>
SIM_RAW void atomic_store(T* address, T value) {
    using W = typename Word<sizeof(T)>::type;
#if SIM_MODE == 2
    announce(address, sizeof(T), static_cast<Access>(ATOMIC | STORE), __builtin_return_address(0));
#endif
    W word;
    __builtin_memcpy(&word, &value, sizeof(T));
    __atomic_store_n(reinterpret_cast<W*>(address), word, __ATOMIC_RELEASE);
}

}  // namespace sim

#define SIM_ATOMIC(NAME, T, EXPRESSION)                                                                             \
    SIM_INLINE T NAME(T* address, T operand) {                                                                      \
        return sim::atomic_update(address, [operand](T old) -> T { return EXPRESSION; });                           \
    }                                                                                                               \
    SIM_INLINE T NAME##_block(T* address, T operand) {                                                              \
        return sim::atomic_update<sim::ATOMIC | sim::BLOCK>(address, [operand](T old) -> T { return EXPRESSION; }); \
    }                                                                                                               \
    SIM_INLINE T NAME##_system(T* address, T operand) {                                                             \
        return NAME(address, operand);                                                                              \
    }

SIM_ATOMIC(atomicAdd, int, static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(operand)))
SIM_ATOMIC(atomicAdd, unsigned, old + operand)
SIM_ATOMIC(atomicAdd, unsigned long long, old + operand)
SIM_ATOMIC(atomicAdd, float, old + operand)
SIM_ATOMIC(atomicAdd, double, old + operand)
SIM_ATOMIC(atomicSub, int, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(operand)))
SIM_ATOMIC(atomicSub, unsigned, old - operand)
SIM_ATOMIC(atomicExch, int, ((void)old, operand))
SIM_ATOMIC(atomicExch, unsigned, ((void)old, operand))
SIM_ATOMIC(atomicExch, unsigned long long, ((void)old, operand))
SIM_ATOMIC(atomicExch, float, ((void)old, operand))
SIM_ATOMIC(atomicMin, int, old < operand ? old : operand)
SIM_ATOMIC(atomicMin, unsigned, old < operand ? old : operand)
SIM_ATOMIC(atomicMin, long long, old < operand ? old : operand)
SIM_ATOMIC(atomicMin, unsigned long long, old < operand ? old : operand)
SIM_ATOMIC(atomicMax, int, old > operand ? old : operand)
SIM_ATOMIC(atomicMax, unsigned, old > operand ? old : operand)
SIM_ATOMIC(atomicMax, long long, old > operand ? old : operand)
SIM_ATOMIC(atomicMax, unsigned long long, old > operand ? old : operand)
SIM_ATOMIC(atomicInc, unsigned, old >= operand ? 0 : old + 1)
SIM_ATOMIC(atomicDec, unsigned, old == 0 || old > operand ? operand : old - 1)
SIM_ATOMIC(atomicAnd, int, old& operand)
SIM_ATOMIC(atomicAnd, unsigned, old& operand)
SIM_ATOMIC(atomicAnd, unsigned long long, old& operand)
SIM_ATOMIC(atomicOr, int, old | operand)
SIM_ATOMIC(atomicOr, unsigned, old | operand)
SIM_ATOMIC(atomicOr, unsigned long long, old | operand)
SIM_ATOMIC(atomicXor, int, old ^ operand)
SIM_ATOMIC(atomicXor, unsigned, old ^ operand)
SIM_ATOMIC(atomicXor, unsigned long long, old ^ operand)
#undef SIM_ATOMIC

namespace sim {
template <int KIND, class T>
SIM_INLINE T compare_and_swap(T* address, T compare, T value) {
    return atomic_update<KIND>(address, [compare, value](T old) -> T { return old == compare ? value : old; });
}
}  // namespace sim

#define SIM_CAS(T)                                                                    \
    SIM_INLINE T atomicCAS(T* address, T compare, T value) {                          \
        return sim::compare_and_swap<sim::CAS>(address, compare, value);              \
    }                                                                                 \
    SIM_INLINE T atomicCAS_block(T* address, T compare, T value) {                    \
        return sim::compare_and_swap<sim::CAS | sim::BLOCK>(address, compare, value); \
    }                                                                                 \
    SIM_INLINE T atomicCAS_system(T* address, T compare, T value) {                   \
        return atomicCAS(address, compare, value);                                    \
    }
SIM_CAS(int)
SIM_CAS(unsigned)
SIM_CAS(unsigned long long)
SIM_CAS(unsigned short)
#undef SIM_CAS
inline float2 atomicAdd(float2* address, float2 operand) {
    return float2{atomicAdd(&address->x, operand.x), atomicAdd(&address->y, operand.y)};
}
inline float4 atomicAdd(float4* address, float4 operand) {
    return float4{atomicAdd(&address->x, operand.x), atomicAdd(&address->y, operand.y),
                  atomicAdd(&address->z, operand.z), atomicAdd(&address->w, operand.w)};
}
