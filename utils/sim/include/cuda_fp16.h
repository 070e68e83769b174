// half for the simulator: IEEE binary16, bit for bit.
#pragma once

#include <cuda_runtime.h>
#include <sim/float16_conversions.h>
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

SIM_FLOAT16_CONVERSIONS(half, half2, __half, __half2, sim::half_bits, sim::half_value)
SIM_FLOAT16(__half, __half2, __float2half, __half2float)

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half(0)
