// What half and bfloat16 share: arithmetic through float, rounded once to nearest even, as the device instructions do.
#pragma once

#include <sim/atomics.h>
#include <sim/math.h>

namespace sim {

// Rounds to odd: a later rounding to a narrower format is then the same as one direct rounding.
inline float narrow_odd(double d) {
    const float f = static_cast<float>(d);
    if (static_cast<double>(f) == d || d != d || std::isinf(f)) return f;
    u32 bits = bits_as<u32>(f);
    if (std::fabs(static_cast<double>(f)) > std::fabs(d)) --bits;
    return bits_as<float>(bits | 1u);
}

// a * b exactly plus c, rounded to odd; a, b and c have at most 24 significant bits.
inline float fma_odd(float a, float b, float c) {
    const double p = static_cast<double>(a) * b, d = c, s = p + d;
    if (std::isinf(s) || s != s) return static_cast<float>(s);
    const double back = s - p, error = (p - (s - back)) + (d - back);
    u64 bits = bits_as<u64>(s);
    if (error != 0 && !(bits & 1)) bits += (error > 0) == (s > 0) ? 1 : ~u64(0);
    return narrow_odd(bits_as<double>(bits));
}

// One step towards +-infinity in a 16-bit sign-and-magnitude format.
inline u16 step_up(u16 x) {
    return x == 0x8000 ? 1 : x & 0x8000 ? x - 1 : x + 1;
}
inline u16 step_down(u16 x) {
    return x == 0 ? 0x8001 : x & 0x8000 ? x + 1 : x - 1;
}

}  // namespace sim

// Operators and intrinsics of T and its pair T2. TO(x) makes a T of a float, F(x) a float of a T.
#define SIM_FLOAT16(T, T2, TO, F)                                                            \
    SIM_FN T operator+(T a, T b) {                                                           \
        return TO(F(a) + F(b));                                                              \
    }                                                                                        \
    SIM_FN T operator-(T a, T b) {                                                           \
        return TO(F(a) - F(b));                                                              \
    }                                                                                        \
    SIM_FN T operator*(T a, T b) {                                                           \
        return TO(F(a) * F(b));                                                              \
    }                                                                                        \
    SIM_FN T operator/(T a, T b) {                                                           \
        return TO(F(a) / F(b));                                                              \
    }                                                                                        \
    SIM_FN T operator-(T a) {                                                                \
        return T::from_bits(a.__x ^ 0x8000u);                                                \
    }                                                                                        \
    SIM_FN T operator+(T a) {                                                                \
        return a;                                                                            \
    }                                                                                        \
    SIM_FN T& operator+=(T& a, T b) {                                                        \
        return a = a + b;                                                                    \
    }                                                                                        \
    SIM_FN T& operator-=(T& a, T b) {                                                        \
        return a = a - b;                                                                    \
    }                                                                                        \
    SIM_FN T& operator*=(T& a, T b) {                                                        \
        return a = a * b;                                                                    \
    }                                                                                        \
    SIM_FN T& operator/=(T& a, T b) {                                                        \
        return a = a / b;                                                                    \
    }                                                                                        \
    SIM_FN T& operator++(T& a) {                                                             \
        return a = a + TO(1.0f);                                                             \
    }                                                                                        \
    SIM_FN T& operator--(T& a) {                                                             \
        return a = a - TO(1.0f);                                                             \
    }                                                                                        \
    SIM_FN bool operator==(T a, T b) {                                                       \
        return F(a) == F(b);                                                                 \
    }                                                                                        \
    SIM_FN bool operator!=(T a, T b) {                                                       \
        return F(a) != F(b);                                                                 \
    }                                                                                        \
    SIM_FN bool operator<(T a, T b) {                                                        \
        return F(a) < F(b);                                                                  \
    }                                                                                        \
    SIM_FN bool operator>(T a, T b) {                                                        \
        return F(a) > F(b);                                                                  \
    }                                                                                        \
    SIM_FN bool operator<=(T a, T b) {                                                       \
        return F(a) <= F(b);                                                                 \
    }                                                                                        \
    SIM_FN bool operator>=(T a, T b) {                                                       \
        return F(a) >= F(b);                                                                 \
    }                                                                                        \
    SIM_FN T __hadd(T a, T b) {                                                              \
        return a + b;                                                                        \
    }                                                                                        \
    SIM_FN T __hsub(T a, T b) {                                                              \
        return a - b;                                                                        \
    }                                                                                        \
    SIM_FN T __hmul(T a, T b) {                                                              \
        return a * b;                                                                        \
    }                                                                                        \
    SIM_FN T __hdiv(T a, T b) {                                                              \
        return a / b;                                                                        \
    }                                                                                        \
    SIM_FN T __hadd_rn(T a, T b) {                                                           \
        return a + b;                                                                        \
    }                                                                                        \
    SIM_FN T __hsub_rn(T a, T b) {                                                           \
        return a - b;                                                                        \
    }                                                                                        \
    SIM_FN T __hmul_rn(T a, T b) {                                                           \
        return a * b;                                                                        \
    }                                                                                        \
    SIM_FN T __hadd_sat(T a, T b) {                                                          \
        return TO(__saturatef(F(a + b)));                                                    \
    }                                                                                        \
    SIM_FN T __hsub_sat(T a, T b) {                                                          \
        return TO(__saturatef(F(a - b)));                                                    \
    }                                                                                        \
    SIM_FN T __hmul_sat(T a, T b) {                                                          \
        return TO(__saturatef(F(a * b)));                                                    \
    }                                                                                        \
    SIM_FN T __hfma(T a, T b, T c) {                                                         \
        return TO(sim::fma_odd(F(a), F(b), F(c)));                                           \
    }                                                                                        \
    SIM_FN T __hfma_sat(T a, T b, T c) {                                                     \
        return TO(__saturatef(F(__hfma(a, b, c))));                                          \
    }                                                                                        \
    SIM_FN T __hfma_relu(T a, T b, T c) {                                                    \
        const T r = __hfma(a, b, c);                                                         \
        return F(r) < 0 ? TO(0.0f) : r;                                                      \
    }                                                                                        \
    SIM_FN T __hneg(T a) {                                                                   \
        return -a;                                                                           \
    }                                                                                        \
    SIM_FN T __habs(T a) {                                                                   \
        return T::from_bits(a.__x & 0x7fffu);                                                \
    }                                                                                        \
    SIM_FN T __hmax(T a, T b) {                                                              \
        return F(a) != F(a) ? b : F(b) != F(b) ? a : F(a) < F(b) ? b : a;                    \
    }                                                                                        \
    SIM_FN T __hmin(T a, T b) {                                                              \
        return F(a) != F(a) ? b : F(b) != F(b) ? a : F(b) < F(a) ? b : a;                    \
    }                                                                                        \
    SIM_FN T __hmax_nan(T a, T b) {                                                          \
        return F(a) != F(a) ? a : F(b) != F(b) ? b : F(a) < F(b) ? b : a;                    \
    }                                                                                        \
    SIM_FN T __hmin_nan(T a, T b) {                                                          \
        return F(a) != F(a) ? a : F(b) != F(b) ? b : F(b) < F(a) ? b : a;                    \
    }                                                                                        \
    SIM_FN bool __heq(T a, T b) {                                                            \
        return a == b;                                                                       \
    }                                                                                        \
    SIM_FN bool __hne(T a, T b) {                                                            \
        return F(a) < F(b) || F(a) > F(b);                                                   \
    }                                                                                        \
    SIM_FN bool __hlt(T a, T b) {                                                            \
        return a < b;                                                                        \
    }                                                                                        \
    SIM_FN bool __hgt(T a, T b) {                                                            \
        return a > b;                                                                        \
    }                                                                                        \
    SIM_FN bool __hle(T a, T b) {                                                            \
        return a <= b;                                                                       \
    }                                                                                        \
    SIM_FN bool __hge(T a, T b) {                                                            \
        return a >= b;                                                                       \
    }                                                                                        \
    SIM_FN bool __hequ(T a, T b) {                                                           \
        return !(__hne(a, b));                                                               \
    }                                                                                        \
    SIM_FN bool __hneu(T a, T b) {                                                           \
        return !(a == b);                                                                    \
    }                                                                                        \
    SIM_FN bool __hltu(T a, T b) {                                                           \
        return !(a >= b);                                                                    \
    }                                                                                        \
    SIM_FN bool __hgtu(T a, T b) {                                                           \
        return !(a <= b);                                                                    \
    }                                                                                        \
    SIM_FN bool __hisnan(T a) {                                                              \
        return F(a) != F(a);                                                                 \
    }                                                                                        \
    SIM_FN int __hisinf(T a) {                                                               \
        return std::isinf(F(a)) ? (F(a) < 0 ? -1 : 1) : 0;                                   \
    }                                                                                        \
    SIM_FN T hexp(T a) {                                                                     \
        return TO(expf(F(a)));                                                               \
    }                                                                                        \
    SIM_FN T hexp2(T a) {                                                                    \
        return TO(exp2f(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T hexp10(T a) {                                                                   \
        return TO(powf(10.0f, F(a)));                                                        \
    }                                                                                        \
    SIM_FN T hlog(T a) {                                                                     \
        return TO(logf(F(a)));                                                               \
    }                                                                                        \
    SIM_FN T hlog2(T a) {                                                                    \
        return TO(log2f(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T hlog10(T a) {                                                                   \
        return TO(log10f(F(a)));                                                             \
    }                                                                                        \
    SIM_FN T hsqrt(T a) {                                                                    \
        return TO(sqrtf(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T hrsqrt(T a) {                                                                   \
        return TO(rsqrtf(F(a)));                                                             \
    }                                                                                        \
    SIM_FN T hrcp(T a) {                                                                     \
        return TO(1.0f / F(a));                                                              \
    }                                                                                        \
    SIM_FN T hsin(T a) {                                                                     \
        return TO(sinf(F(a)));                                                               \
    }                                                                                        \
    SIM_FN T hcos(T a) {                                                                     \
        return TO(cosf(F(a)));                                                               \
    }                                                                                        \
    SIM_FN T htanh(T a) {                                                                    \
        return TO(tanhf(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T htanh_approx(T a) {                                                             \
        return TO(tanhf(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T hceil(T a) {                                                                    \
        return TO(ceilf(F(a)));                                                              \
    }                                                                                        \
    SIM_FN T hfloor(T a) {                                                                   \
        return TO(floorf(F(a)));                                                             \
    }                                                                                        \
    SIM_FN T htrunc(T a) {                                                                   \
        return TO(truncf(F(a)));                                                             \
    }                                                                                        \
    SIM_FN T hrint(T a) {                                                                    \
        return TO(nearbyintf(F(a)));                                                         \
    }                                                                                        \
    SIM_FN T2 operator+(T2 a, T2 b) {                                                        \
        return T2(a.x + b.x, a.y + b.y);                                                     \
    }                                                                                        \
    SIM_FN T2 operator-(T2 a, T2 b) {                                                        \
        return T2(a.x - b.x, a.y - b.y);                                                     \
    }                                                                                        \
    SIM_FN T2 operator*(T2 a, T2 b) {                                                        \
        return T2(a.x * b.x, a.y * b.y);                                                     \
    }                                                                                        \
    SIM_FN T2 operator/(T2 a, T2 b) {                                                        \
        return T2(a.x / b.x, a.y / b.y);                                                     \
    }                                                                                        \
    SIM_FN T2 operator-(T2 a) {                                                              \
        return T2(-a.x, -a.y);                                                               \
    }                                                                                        \
    SIM_FN T2& operator+=(T2& a, T2 b) {                                                     \
        return a = a + b;                                                                    \
    }                                                                                        \
    SIM_FN T2& operator-=(T2& a, T2 b) {                                                     \
        return a = a - b;                                                                    \
    }                                                                                        \
    SIM_FN T2& operator*=(T2& a, T2 b) {                                                     \
        return a = a * b;                                                                    \
    }                                                                                        \
    SIM_FN T2& operator/=(T2& a, T2 b) {                                                     \
        return a = a / b;                                                                    \
    }                                                                                        \
    SIM_FN bool operator==(T2 a, T2 b) {                                                     \
        return a.x == b.x && a.y == b.y;                                                     \
    }                                                                                        \
    SIM_FN bool operator!=(T2 a, T2 b) {                                                     \
        return !(a == b);                                                                    \
    }                                                                                        \
    SIM_FN T2 __hadd2(T2 a, T2 b) {                                                          \
        return a + b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __hsub2(T2 a, T2 b) {                                                          \
        return a - b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __hmul2(T2 a, T2 b) {                                                          \
        return a * b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __h2div(T2 a, T2 b) {                                                          \
        return a / b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __hadd2_rn(T2 a, T2 b) {                                                       \
        return a + b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __hmul2_rn(T2 a, T2 b) {                                                       \
        return a * b;                                                                        \
    }                                                                                        \
    SIM_FN T2 __hfma2(T2 a, T2 b, T2 c) {                                                    \
        return T2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                             \
    }                                                                                        \
    SIM_FN T2 __hfma2_relu(T2 a, T2 b, T2 c) {                                               \
        return T2(__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y));                   \
    }                                                                                        \
    SIM_FN T2 __hneg2(T2 a) {                                                                \
        return -a;                                                                           \
    }                                                                                        \
    SIM_FN T2 __habs2(T2 a) {                                                                \
        return T2(__habs(a.x), __habs(a.y));                                                 \
    }                                                                                        \
    SIM_FN T2 __hmax2(T2 a, T2 b) {                                                          \
        return T2(__hmax(a.x, b.x), __hmax(a.y, b.y));                                       \
    }                                                                                        \
    SIM_FN T2 __hmin2(T2 a, T2 b) {                                                          \
        return T2(__hmin(a.x, b.x), __hmin(a.y, b.y));                                       \
    }                                                                                        \
    SIM_FN T2 __hmax2_nan(T2 a, T2 b) {                                                      \
        return T2(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y));                               \
    }                                                                                        \
    SIM_FN T2 __hmin2_nan(T2 a, T2 b) {                                                      \
        return T2(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y));                               \
    }                                                                                        \
    SIM_FN T2 __heq2(T2 a, T2 b) {                                                           \
        return T2(TO(a.x == b.x), TO(a.y == b.y));                                           \
    }                                                                                        \
    SIM_FN T2 __hlt2(T2 a, T2 b) {                                                           \
        return T2(TO(a.x < b.x), TO(a.y < b.y));                                             \
    }                                                                                        \
    SIM_FN T2 __hgt2(T2 a, T2 b) {                                                           \
        return T2(TO(a.x > b.x), TO(a.y > b.y));                                             \
    }                                                                                        \
    SIM_FN bool __hbeq2(T2 a, T2 b) {                                                        \
        return a == b;                                                                       \
    }                                                                                        \
    SIM_FN bool __hblt2(T2 a, T2 b) {                                                        \
        return a.x < b.x && a.y < b.y;                                                       \
    }                                                                                        \
    SIM_FN bool __hbgt2(T2 a, T2 b) {                                                        \
        return a.x > b.x && a.y > b.y;                                                       \
    }                                                                                        \
    SIM_FN T2 h2exp(T2 a) {                                                                  \
        return T2(hexp(a.x), hexp(a.y));                                                     \
    }                                                                                        \
    SIM_FN T2 h2exp2(T2 a) {                                                                 \
        return T2(hexp2(a.x), hexp2(a.y));                                                   \
    }                                                                                        \
    SIM_FN T2 h2log(T2 a) {                                                                  \
        return T2(hlog(a.x), hlog(a.y));                                                     \
    }                                                                                        \
    SIM_FN T2 h2log2(T2 a) {                                                                 \
        return T2(hlog2(a.x), hlog2(a.y));                                                   \
    }                                                                                        \
    SIM_FN T2 h2sqrt(T2 a) {                                                                 \
        return T2(hsqrt(a.x), hsqrt(a.y));                                                   \
    }                                                                                        \
    SIM_FN T2 h2rsqrt(T2 a) {                                                                \
        return T2(hrsqrt(a.x), hrsqrt(a.y));                                                 \
    }                                                                                        \
    SIM_FN T2 h2rcp(T2 a) {                                                                  \
        return T2(hrcp(a.x), hrcp(a.y));                                                     \
    }                                                                                        \
    SIM_FN T2 h2tanh(T2 a) {                                                                 \
        return T2(htanh(a.x), htanh(a.y));                                                   \
    }                                                                                        \
    SIM_FN T2 h2floor(T2 a) {                                                                \
        return T2(hfloor(a.x), hfloor(a.y));                                                 \
    }                                                                                        \
    SIM_FN T2 h2ceil(T2 a) {                                                                 \
        return T2(hceil(a.x), hceil(a.y));                                                   \
    }                                                                                        \
    inline T atomicAdd(T* address, T operand) {                                              \
        return sim::atomic_update(address, [operand](T old) -> T { return old + operand; }); \
    }                                                                                        \
    inline T2 atomicAdd(T2* address, T2 operand) {                                           \
        return T2(atomicAdd(&address->x, operand.x), atomicAdd(&address->y, operand.y));     \
    }

// The members of T and T2, whose float conversions are TO_BITS and FROM_BITS.
#define SIM_FLOAT16_TYPES(T, T2, RAW, TO_BITS, FROM_BITS)                                                 \
    struct RAW {                                                                                          \
        unsigned short x;                                                                                 \
    };                                                                                                    \
    struct alignas(2) T {                                                                                 \
        unsigned short __x;                                                                               \
        T() = default;                                                                                    \
        T(float f) : __x(TO_BITS(f)) {}                                                                   \
        T(double d) : __x(TO_BITS(sim::narrow_odd(d))) {}                                                 \
        T(int i) : __x(TO_BITS(sim::narrow_odd(i))) {}                                                    \
        T(unsigned i) : __x(TO_BITS(sim::narrow_odd(i))) {}                                               \
        T(short i) : __x(TO_BITS(static_cast<float>(i))) {}                                               \
        T(unsigned short i) : __x(TO_BITS(static_cast<float>(i))) {}                                      \
        T(long i) : __x(TO_BITS(sim::narrow_odd(static_cast<double>(i)))) {}                              \
        T(unsigned long i) : __x(TO_BITS(sim::narrow_odd(static_cast<double>(i)))) {}                     \
        T(long long i) : __x(TO_BITS(sim::narrow_odd(static_cast<double>(i)))) {}                         \
        T(unsigned long long i) : __x(TO_BITS(sim::narrow_odd(static_cast<double>(i)))) {}                \
        constexpr T(RAW r) : __x(r.x) {}                                                                  \
        T& operator=(RAW r) { return __x = r.x, *this; }                                                  \
        static constexpr T from_bits(unsigned bits) { return T(RAW{static_cast<unsigned short>(bits)}); } \
        operator RAW() const { return RAW{__x}; }                                                         \
        operator float() const { return FROM_BITS(__x); }                                                 \
        explicit operator double() const { return FROM_BITS(__x); }                                       \
        explicit operator int() const { return __float2int_rz(FROM_BITS(__x)); }                          \
        explicit operator unsigned() const { return __float2uint_rz(FROM_BITS(__x)); }                    \
        explicit operator long long() const { return __float2ll_rz(FROM_BITS(__x)); }                     \
        explicit operator bool() const { return (__x & 0x7fff) != 0; }                                    \
    };                                                                                                    \
    struct alignas(4) T2 {                                                                                \
        T x, y;                                                                                           \
        T2() = default;                                                                                   \
        constexpr T2(const T& a, const T& b) : x(a), y(b) {}                                              \
    };
