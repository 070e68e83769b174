// Vector loads and stores: N elements of T in one memory instruction (16 bytes = LDG.E.128 / STG.E.128).
//
// A warp that moves 16 bytes per lane needs a quarter of the instructions, and has four times the bytes in flight, of
// one that moves 4. The pointer must be aligned to N * sizeof(T): ask is_aligned() on the host and fall back to N = 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace kernels {

constexpr int kVectorBytes = 16;  // the widest load of one thread up to sm_90

template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
    T element[N];
};

namespace detail {
template <int Bytes>
struct RawType;
template <>
struct RawType<16> {
    using type = uint4;
};
template <>
struct RawType<8> {
    using type = uint2;
};
template <>
struct RawType<4> {
    using type = unsigned int;
};
template <>
struct RawType<2> {
    using type = unsigned short;
};
template <typename T, int N>
using Raw = typename RawType<static_cast<int>(sizeof(T)) * N>::type;
}  // namespace detail

// Is every `bytes`-wide access at pointer, pointer + bytes, ... aligned?
__host__ __device__ inline bool is_aligned(const void* pointer, int bytes) {
    return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0;
}

template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load(const T* pointer) {
    return *reinterpret_cast<const Vector<T, N>*>(pointer);
}

template <int N, typename T>
__device__ __forceinline__ void store(T* pointer, const Vector<T, N>& value) {
    *reinterpret_cast<Vector<T, N>*>(pointer) = value;
}

// For data read once: evicted from L2 before data that will be wanted again.
template <int N, typename T>
__device__ __forceinline__ Vector<T, N> load_streaming(const T* pointer) {
    const detail::Raw<T, N> raw = __ldcs(reinterpret_cast<const detail::Raw<T, N>*>(pointer));
    Vector<T, N> value;
    memcpy(&value, &raw, sizeof(value));
    return value;
}

// For data no kernel reads again soon.
template <int N, typename T>
__device__ __forceinline__ void store_streaming(T* pointer, const Vector<T, N>& value) {
    detail::Raw<T, N> raw;
    memcpy(&raw, &value, sizeof(value));
    __stcs(reinterpret_cast<detail::Raw<T, N>*>(pointer), raw);
}

}  // namespace kernels
