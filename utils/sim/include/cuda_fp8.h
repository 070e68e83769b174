// fp8 for the simulator: e4m3 (no infinity, NaN is 0x7f) and e5m2, saturating as cvt.satfinite does.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;

namespace sim {

template <int E, int M, int BIAS>
float fp8_value(u8 bits) {
    const int exponent = bits >> M & ((1 << E) - 1), fraction = bits & ((1 << M) - 1);
    const float sign = bits & 0x80 ? -1.0f : 1.0f;
    if (E == 4 && (bits & 0x7f) == 0x7f) return NAN;
    if (E == 5 && exponent == 31) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), 1 - BIAS - M);
    return sign * std::ldexp(static_cast<float>((1 << M) + fraction), exponent - BIAS - M);
}

// Round to nearest even; what is too large becomes the largest number (or, without saturation, infinity or NaN).
template <int E, int M, int BIAS>
u8 fp8_bits(double x, bool saturate) {
    const u8 sign = std::signbit(x) ? 0x80 : 0;
    constexpr u8 NOT_A_NUMBER = 0x7f, LARGEST = E == 4 ? 0x7e : 0x7b;
    if (x != x) return E == 4 ? sign | NOT_A_NUMBER : NOT_A_NUMBER;
    const double a = std::fabs(x);
    int exponent = a == 0 ? 1 - BIAS : std::max(std::ilogb(a), 1 - BIAS);
    const double units = std::isinf(a) ? 1e9 : std::nearbyint(std::ldexp(a, M - exponent));
    const double rounded = std::isinf(a) ? a : std::ldexp(units, exponent - M);
    if (rounded > fp8_value<E, M, BIAS>(LARGEST)) return sign | (saturate ? LARGEST : E == 4 ? NOT_A_NUMBER : 0x7c);
    int m = static_cast<int>(units);
    if (m >= 2 << M) m >>= 1, ++exponent;
    if (m < 1 << M) return sign | static_cast<u8>(m);
    return sign | static_cast<u8>((exponent + BIAS) << M | (m - (1 << M)));
}

inline u8 to_fp8(double x, bool saturate, __nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? fp8_bits<4, 3, 7>(x, saturate) : fp8_bits<5, 2, 15>(x, saturate);
}
inline float of_fp8(u8 bits, __nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? fp8_value<4, 3, 7>(bits) : fp8_value<5, 2, 15>(bits);
}

}  // namespace sim

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return sim::to_fp8(x, s == __NV_SATFINITE, k);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return sim::to_fp8(x, s == __NV_SATFINITE, k);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return sim::to_fp8(sim::half_value(x.x), s == __NV_SATFINITE, k);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t s,
                                                      __nv_fp8_interpretation_t k) {
    return sim::to_fp8(sim::bfloat_value(x.x), s == __NV_SATFINITE, k);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t s, __nv_fp8_interpretation_t k) {
    return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_fp8(x.x, s, k) | __nv_cvt_float_to_fp8(x.y, s, k) << 8);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t k) {
    return __half_raw{sim::half_bits(sim::of_fp8(x, k))};
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t k) {
    return __half2_raw{__nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x), k).x,
                       __nv_cvt_fp8_to_halfraw(static_cast<unsigned char>(x >> 8), k).x};
}

#define SIM_FP8(T, KIND)                                                                             \
    struct T {                                                                                       \
        __nv_fp8_storage_t __x;                                                                      \
        T() = default;                                                                               \
        explicit T(float f) : __x(sim::to_fp8(f, true, KIND)) {}                                     \
        explicit T(double f) : __x(sim::to_fp8(f, true, KIND)) {}                                    \
        explicit T(__half h) : __x(sim::to_fp8(__half2float(h), true, KIND)) {}                      \
        explicit T(__nv_bfloat16 b) : __x(sim::to_fp8(__bfloat162float(b), true, KIND)) {}           \
        explicit T(int i) : __x(sim::to_fp8(i, true, KIND)) {}                                       \
        explicit operator float() const { return sim::of_fp8(__x, KIND); }                           \
        explicit operator double() const { return sim::of_fp8(__x, KIND); }                          \
        explicit operator __half() const { return __float2half(sim::of_fp8(__x, KIND)); }            \
        explicit operator __nv_bfloat16() const { return __float2bfloat16(sim::of_fp8(__x, KIND)); } \
    };
SIM_FP8(__nv_fp8_e4m3, __NV_E4M3)
SIM_FP8(__nv_fp8_e5m2, __NV_E5M2)
#define SIM_FP8X2(T, KIND)                                                               \
    struct alignas(2) T {                                                                \
        __nv_fp8x2_storage_t __x;                                                        \
        T() = default;                                                                   \
        explicit T(float2 f) : __x(__nv_cvt_float2_to_fp8x2(f, __NV_SATFINITE, KIND)) {} \
        explicit operator float2() const {                                               \
            return float2{sim::of_fp8(static_cast<unsigned char>(__x), KIND),            \
                          sim::of_fp8(static_cast<unsigned char>(__x >> 8), KIND)};      \
        }                                                                                \
    };
SIM_FP8X2(__nv_fp8x2_e4m3, __NV_E4M3)
SIM_FP8X2(__nv_fp8x2_e5m2, __NV_E5M2)
#define SIM_FP8X4(T, T2)                                                                                            \
    struct alignas(4) T {                                                                                           \
        __nv_fp8x4_storage_t __x;                                                                                   \
        T() = default;                                                                                              \
        explicit T(float4 f)                                                                                        \
            : __x(static_cast<unsigned>(T2(float2{f.x, f.y}).__x) | static_cast<unsigned>(T2(float2{f.z, f.w}).__x) \
                                                                        << 16) {}                                   \
        explicit operator float4() const {                                                                          \
            T2 lo, hi;                                                                                              \
            lo.__x = static_cast<unsigned short>(__x), hi.__x = static_cast<unsigned short>(__x >> 16);             \
            const float2 a(lo), b(hi);                                                                              \
            return float4{a.x, a.y, b.x, b.y};                                                                      \
        }                                                                                                           \
    };
SIM_FP8X4(__nv_fp8x4_e4m3, __nv_fp8x2_e4m3)
SIM_FP8X4(__nv_fp8x4_e5m2, __nv_fp8x2_e5m2)
#undef SIM_FP8
#undef SIM_FP8X2
#undef SIM_FP8X4
