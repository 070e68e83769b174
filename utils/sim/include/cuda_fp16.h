// half for the simulator: IEEE binary16, bit for bit.
#pragma once

#include <cuda_runtime.h>
#include <sim/float16.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace sim {

inline float half_value(u16 h) {
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    const u32 sign = static_cast<u32>(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31) return bits_as<float>(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0));
    if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, bits_as<float>(sign));
    return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
#endif
}

inline u16 half_bits(float f) {
    if (f != f) return 0x7fff;
#if defined(__F16C__)
    return _cvtss_sh(f, 0);
#else
    const u32 bits = bits_as<u32>(f);
    const u16 sign = static_cast<u16>(bits >> 16 & 0x8000);
    const float a = std::fabs(f);
    if (a >= 65520.0f) return sign | 0x7c00;
    if (a < 0x1p-14f) return sign | static_cast<u16>(std::nearbyint(a * 0x1p24f));
    u32 m = bits_as<u32>(a) - (112u << 23);
    m += 0xfff + (m >> 13 & 1);
    return sign | static_cast<u16>(m >> 13);
#endif
}

// The nearest half in one direction: -1 down, +1 up, 0 towards zero.
inline u16 half_directed(float f, int direction) {
    u16 h = half_bits(f);
    if (f != f || std::isinf(f)) return h;
    const float v = half_value(h);
    const int want = direction ? direction : f < 0 ? 1 : -1;
    if (want < 0 && v > f) h = step_down(h);
    if (want > 0 && v < f) h = step_up(h);
    return h;
}

}  // namespace sim

SIM_FLOAT16_TYPES(__half, __half2, __half_raw, sim::half_bits, sim::half_value)
using half = __half;
using half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
struct __half2_raw {
    unsigned short x, y;
};

SIM_FN float __half2float(__half h) {
    return sim::half_value(h.__x);
}
SIM_FN __half __float2half(float f) {
    return __half::from_bits(sim::half_bits(f));
}
SIM_FN __half __float2half_rn(float f) {
    return __float2half(f);
}
SIM_FN __half __float2half_rz(float f) {
    return __half::from_bits(sim::half_directed(f, 0));
}
SIM_FN __half __float2half_rd(float f) {
    return __half::from_bits(sim::half_directed(f, -1));
}
SIM_FN __half __float2half_ru(float f) {
    return __half::from_bits(sim::half_directed(f, 1));
}
SIM_FN __half __double2half(double d) {
    return __half(d);
}
SIM_FLOAT16(__half, __half2, __float2half, __half2float)

SIM_FN __half2 __float2half2_rn(float f) {
    return __half2(__float2half(f), __float2half(f));
}
SIM_FN __half2 __floats2half2_rn(float a, float b) {
    return __half2(__float2half(a), __float2half(b));
}
SIM_FN __half2 __float22half2_rn(float2 v) {
    return __floats2half2_rn(v.x, v.y);
}
SIM_FN float2 __half22float2(__half2 v) {
    return float2{__half2float(v.x), __half2float(v.y)};
}
SIM_FN __half2 __half2half2(__half h) {
    return __half2(h, h);
}
SIM_FN __half2 __halves2half2(__half a, __half b) {
    return __half2(a, b);
}
SIM_FN __half2 make_half2(__half a, __half b) {
    return __half2(a, b);
}
SIM_FN __half __low2half(__half2 v) {
    return v.x;
}
SIM_FN __half __high2half(__half2 v) {
    return v.y;
}
SIM_FN float __low2float(__half2 v) {
    return __half2float(v.x);
}
SIM_FN float __high2float(__half2 v) {
    return __half2float(v.y);
}
SIM_FN __half2 __low2half2(__half2 v) {
    return __half2(v.x, v.x);
}
SIM_FN __half2 __high2half2(__half2 v) {
    return __half2(v.y, v.y);
}
SIM_FN __half2 __lows2half2(__half2 a, __half2 b) {
    return __half2(a.x, b.x);
}
SIM_FN __half2 __highs2half2(__half2 a, __half2 b) {
    return __half2(a.y, b.y);
}
SIM_FN __half2 __lowhigh2highlow(__half2 v) {
    return __half2(v.y, v.x);
}
SIM_FN short __half_as_short(__half h) {
    return static_cast<short>(h.__x);
}
SIM_FN unsigned short __half_as_ushort(__half h) {
    return h.__x;
}
SIM_FN __half __short_as_half(short s) {
    return __half::from_bits(static_cast<unsigned short>(s));
}
SIM_FN __half __ushort_as_half(unsigned short s) {
    return __half::from_bits(s);
}
SIM_FN int __half2int_rn(__half h) {
    return __float2int_rn(__half2float(h));
}
SIM_FN int __half2int_rz(__half h) {
    return __float2int_rz(__half2float(h));
}
SIM_FN int __half2int_rd(__half h) {
    return __float2int_rd(__half2float(h));
}
SIM_FN int __half2int_ru(__half h) {
    return __float2int_ru(__half2float(h));
}
SIM_FN unsigned __half2uint_rn(__half h) {
    return __float2uint_rn(__half2float(h));
}
SIM_FN unsigned __half2uint_rz(__half h) {
    return __float2uint_rz(__half2float(h));
}
SIM_FN short __half2short_rn(__half h) {
    return sim::to_integer<short>(__half2float(h), nearbyintf(__half2float(h)));
}
SIM_FN short __half2short_rz(__half h) {
    return sim::to_integer<short>(__half2float(h), truncf(__half2float(h)));
}
SIM_FN long long __half2ll_rn(__half h) {
    return __float2ll_rn(__half2float(h));
}
SIM_FN __half __int2half_rn(int i) {
    return __half(i);
}
SIM_FN __half __uint2half_rn(unsigned i) {
    return __half(i);
}
SIM_FN __half __short2half_rn(short i) {
    return __half(i);
}
SIM_FN __half __ushort2half_rn(unsigned short i) {
    return __half(i);
}
SIM_FN __half __ll2half_rn(long long i) {
    return __half(i);
}
#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half(0)
