// Conversions of half and of bfloat16, from one table: t and t2 are the type and its pair as CUDA's function names
// spell them (half and half2), T and T2 the types; TO_BITS rounds a float to T's bits, FROM_BITS is its inverse.
#pragma once

#include <sim/float16.h>

namespace sim {

// The nearest value in one direction: -1 down, +1 up, 0 towards zero.
template <u16 (*TO_BITS)(float), float (*FROM_BITS)(u16)>
u16 float16_directed(float f, int direction) {
    const u16 bits = TO_BITS(f);
    if (f != f || std::isinf(f)) return bits;
    const float value = FROM_BITS(bits);
    const int want = direction ? direction : f < 0 ? 1 : -1;
    if (want < 0 && value > f) return step_down(bits);
    if (want > 0 && value < f) return step_up(bits);
    return bits;
}

}  // namespace sim

#define SIM_FLOAT16_CONVERSIONS(t, t2, T, T2, TO_BITS, FROM_BITS)                      \
    SIM_FN float __##t##2float(T h) {                                                  \
        return FROM_BITS(h.__x);                                                       \
    }                                                                                  \
    SIM_FN T __float2##t(float f) {                                                    \
        return T::from_bits(TO_BITS(f));                                               \
    }                                                                                  \
    SIM_FN T __float2##t##_rn(float f) {                                               \
        return __float2##t(f);                                                         \
    }                                                                                  \
    SIM_FN T __float2##t##_rz(float f) {                                               \
        return T::from_bits(sim::float16_directed<TO_BITS, FROM_BITS>(f, 0));          \
    }                                                                                  \
    SIM_FN T __float2##t##_rd(float f) {                                               \
        return T::from_bits(sim::float16_directed<TO_BITS, FROM_BITS>(f, -1));         \
    }                                                                                  \
    SIM_FN T __float2##t##_ru(float f) {                                               \
        return T::from_bits(sim::float16_directed<TO_BITS, FROM_BITS>(f, 1));          \
    }                                                                                  \
    SIM_FN T __double2##t(double d) {                                                  \
        return T(d);                                                                   \
    }                                                                                  \
    SIM_FN T2 __float2##t2##_rn(float f) {                                             \
        return T2(__float2##t(f), __float2##t(f));                                     \
    }                                                                                  \
    SIM_FN T2 __floats2##t2##_rn(float a, float b) {                                   \
        return T2(__float2##t(a), __float2##t(b));                                     \
    }                                                                                  \
    SIM_FN T2 __float22##t2##_rn(float2 v) {                                           \
        return __floats2##t2##_rn(v.x, v.y);                                           \
    }                                                                                  \
    SIM_FN float2 __##t2##2float2(T2 v) {                                              \
        return float2{__##t##2float(v.x), __##t##2float(v.y)};                         \
    }                                                                                  \
    SIM_FN T2 __##t##2##t2(T h) {                                                      \
        return T2(h, h);                                                               \
    }                                                                                  \
    SIM_FN T2 __halves2##t2(T a, T b) {                                                \
        return T2(a, b);                                                               \
    }                                                                                  \
    SIM_FN T2 make_##t2(T a, T b) {                                                    \
        return T2(a, b);                                                               \
    }                                                                                  \
    SIM_FN T __low2##t(T2 v) {                                                         \
        return v.x;                                                                    \
    }                                                                                  \
    SIM_FN T __high2##t(T2 v) {                                                        \
        return v.y;                                                                    \
    }                                                                                  \
    SIM_FN float __low2float(T2 v) {                                                   \
        return __##t##2float(v.x);                                                     \
    }                                                                                  \
    SIM_FN float __high2float(T2 v) {                                                  \
        return __##t##2float(v.y);                                                     \
    }                                                                                  \
    SIM_FN T2 __low2##t2(T2 v) {                                                       \
        return T2(v.x, v.x);                                                           \
    }                                                                                  \
    SIM_FN T2 __high2##t2(T2 v) {                                                      \
        return T2(v.y, v.y);                                                           \
    }                                                                                  \
    SIM_FN T2 __lows2##t2(T2 a, T2 b) {                                                \
        return T2(a.x, b.x);                                                           \
    }                                                                                  \
    SIM_FN T2 __highs2##t2(T2 a, T2 b) {                                               \
        return T2(a.y, b.y);                                                           \
    }                                                                                  \
    SIM_FN T2 __lowhigh2highlow(T2 v) {                                                \
        return T2(v.y, v.x);                                                           \
    }                                                                                  \
    SIM_FN short __##t##_as_short(T h) {                                               \
        return static_cast<short>(h.__x);                                              \
    }                                                                                  \
    SIM_FN unsigned short __##t##_as_ushort(T h) {                                     \
        return h.__x;                                                                  \
    }                                                                                  \
    SIM_FN T __short_as_##t(short s) {                                                 \
        return T::from_bits(static_cast<unsigned short>(s));                           \
    }                                                                                  \
    SIM_FN T __ushort_as_##t(unsigned short s) {                                       \
        return T::from_bits(s);                                                        \
    }                                                                                  \
    SIM_FN int __##t##2int_rn(T h) {                                                   \
        return __float2int_rn(__##t##2float(h));                                       \
    }                                                                                  \
    SIM_FN int __##t##2int_rz(T h) {                                                   \
        return __float2int_rz(__##t##2float(h));                                       \
    }                                                                                  \
    SIM_FN int __##t##2int_rd(T h) {                                                   \
        return __float2int_rd(__##t##2float(h));                                       \
    }                                                                                  \
    SIM_FN int __##t##2int_ru(T h) {                                                   \
        return __float2int_ru(__##t##2float(h));                                       \
    }                                                                                  \
    SIM_FN unsigned __##t##2uint_rn(T h) {                                             \
        return __float2uint_rn(__##t##2float(h));                                      \
    }                                                                                  \
    SIM_FN unsigned __##t##2uint_rz(T h) {                                             \
        return __float2uint_rz(__##t##2float(h));                                      \
    }                                                                                  \
    SIM_FN short __##t##2short_rn(T h) {                                               \
        return sim::to_integer<short>(__##t##2float(h), nearbyintf(__##t##2float(h))); \
    }                                                                                  \
    SIM_FN short __##t##2short_rz(T h) {                                               \
        return sim::to_integer<short>(__##t##2float(h), truncf(__##t##2float(h)));     \
    }                                                                                  \
    SIM_FN long long __##t##2ll_rn(T h) {                                              \
        return __float2ll_rn(__##t##2float(h));                                        \
    }                                                                                  \
    SIM_FN T __int2##t##_rn(int i) {                                                   \
        return T(i);                                                                   \
    }                                                                                  \
    SIM_FN T __uint2##t##_rn(unsigned i) {                                             \
        return T(i);                                                                   \
    }                                                                                  \
    SIM_FN T __short2##t##_rn(short i) {                                               \
        return T(i);                                                                   \
    }                                                                                  \
    SIM_FN T __ushort2##t##_rn(unsigned short i) {                                     \
        return T(i);                                                                   \
    }                                                                                  \
    SIM_FN T __ll2##t##_rn(long long i) {                                              \
        return T(i);                                                                   \
    }
