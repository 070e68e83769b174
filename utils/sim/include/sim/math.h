// Arithmetic intrinsics. The fast ones (__expf, __fdividef, ...) are computed exactly rounded or as the C library does:
// their error on a device is not imitated.
#pragma once

#include <math.h>

#include <bit>
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include <sim/core.h>

#define SIM_FN inline __attribute__((always_inline))

// ---- min and max, of mixed types as CUDA has them -------------------------------------------------------------------

template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        // fmax: NaN loses.
        return b != b ? T(a) : a != a ? T(b) : (T(a) < T(b) ? T(b) : T(a));
    } else {
        return T(a) < T(b) ? T(b) : T(a);
    }
}
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        return b != b ? T(a) : a != a ? T(b) : (T(b) < T(a) ? T(b) : T(a));
    } else {
        return T(b) < T(a) ? T(b) : T(a);
    }
}
SIM_FN unsigned umax(unsigned a, unsigned b) {
    return a > b ? a : b;
}
SIM_FN unsigned umin(unsigned a, unsigned b) {
    return a < b ? a : b;
}
SIM_FN long long llmax(long long a, long long b) {
    return a > b ? a : b;
}
SIM_FN long long llmin(long long a, long long b) {
    return a < b ? a : b;
}

// ---- single precision
// ------------------------------------------------------------------------------------------------

SIM_FN float rsqrtf(float x) {
    return static_cast<float>(1.0 / sqrt(static_cast<double>(x)));
}
SIM_FN double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
SIM_FN float rsqrt(float x) {
    return rsqrtf(x);
}
SIM_FN float rcbrtf(float x) {
    return 1.0f / cbrtf(x);
}
SIM_FN float __expf(float x) {
    return expf(x);
}
SIM_FN float __exp10f(float x) {
    return powf(10.0f, x);
}
SIM_FN float __logf(float x) {
    return logf(x);
}
SIM_FN float __log2f(float x) {
    return log2f(x);
}
SIM_FN float __log10f(float x) {
    return log10f(x);
}
SIM_FN float __sinf(float x) {
    return sinf(x);
}
SIM_FN float __cosf(float x) {
    return cosf(x);
}
SIM_FN float __tanf(float x) {
    return tanf(x);
}
SIM_FN float __tanhf(float x) {
    return tanhf(x);
}
SIM_FN void __sincosf(float x, float* s, float* c) {
    *s = sinf(x), *c = cosf(x);
}
SIM_FN float __powf(float x, float y) {
    return powf(x, y);
}
SIM_FN float __fdividef(float x, float y) {
    return x / y;
}
SIM_FN float fdividef(float x, float y) {
    return x / y;
}
SIM_FN double fdivide(double x, double y) {
    return x / y;
}
SIM_FN float __saturatef(float x) {
    return x > 0.0f ? (x > 1.0f ? 1.0f : x) : 0.0f;  // NaN and -0 give +0
}
SIM_FN float normcdff(float x) {
    return static_cast<float>(0.5 * erfc(-static_cast<double>(x) * 0.70710678118654752440));
}
SIM_FN double normcdf(double x) {
    return 0.5 * erfc(-x * 0.70710678118654752440);
}
SIM_FN float sinpif(float x) {
    return static_cast<float>(sin(M_PI * fmod(static_cast<double>(x), 2.0)));
}
SIM_FN float cospif(float x) {
    return static_cast<float>(cos(M_PI * fmod(static_cast<double>(x), 2.0)));
}
SIM_FN double sinpi(double x) {
    return sin(M_PI * fmod(x, 2.0));
}
SIM_FN double cospi(double x) {
    return cos(M_PI * fmod(x, 2.0));
}
SIM_FN void sincospif(float x, float* s, float* c) {
    *s = sinpif(x), *c = cospif(x);
}
SIM_FN float norm3df(float a, float b, float c) {
    return sqrtf(a * a + b * b + c * c);
}
SIM_FN float norm4df(float a, float b, float c, float d) {
    return sqrtf(a * a + b * b + c * c + d * d);
}
SIM_FN float rnorm3df(float a, float b, float c) {
    return 1.0f / norm3df(a, b, c);
}
SIM_FN float rhypotf(float a, float b) {
    return 1.0f / hypotf(a, b);
}
SIM_FN float erfcxf(float x) {
    return static_cast<float>(exp(static_cast<double>(x) * x) * erfc(static_cast<double>(x)));
}
inline double erfinv(double y) {
    if (y <= -1.0 || y >= 1.0) return y == 1.0 ? INFINITY : y == -1.0 ? -INFINITY : NAN;
    // Winitzki's approximation, then Newton on erf: two steps reach double precision.
    const double l = log(1.0 - y * y), a = 0.147, t = 2.0 / (M_PI * a) + l / 2.0;
    double x = copysign(sqrt(sqrt(t * t - l / a) - t), y);
    for (int i = 0; i < 3; ++i) x -= (erf(x) - y) / (2.0 / sqrt(M_PI) * exp(-x * x));
    return x;
}
SIM_FN float erfinvf(float y) {
    return static_cast<float>(erfinv(y));
}
SIM_FN double normcdfinv(double p) {
    return M_SQRT2 * erfinv(2.0 * p - 1.0);
}
SIM_FN float normcdfinvf(float p) {
    return static_cast<float>(normcdfinv(p));
}

#define SIM_ROUNDED(NAME, T, ARGUMENTS, EXPRESSION)     \
    SIM_FN T NAME##_rn ARGUMENTS {                      \
        return EXPRESSION;                              \
    }                                                   \
    inline T NAME##_rz ARGUMENTS {                      \
        SIM_WITH_ROUNDING(FE_TOWARDZERO, T, EXPRESSION) \
    }                                                   \
    inline T NAME##_ru ARGUMENTS {                      \
        SIM_WITH_ROUNDING(FE_UPWARD, T, EXPRESSION)     \
    }                                                   \
    inline T NAME##_rd ARGUMENTS {                      \
        SIM_WITH_ROUNDING(FE_DOWNWARD, T, EXPRESSION)   \
    }
// Operands are hidden from the optimiser, which must not fold or move the operation out of the changed rounding mode.
#define SIM_WITH_ROUNDING(MODE, T, EXPRESSION) \
    const int was = std::fegetround();         \
    std::fesetround(MODE);                     \
    asm volatile("" ::: "memory");             \
    volatile T result = EXPRESSION;            \
    asm volatile("" ::: "memory");             \
    std::fesetround(was);                      \
    return result;
namespace sim {
template <class T>
SIM_FN T opaque(T x) {
    asm volatile("" : "+x"(x));
    return x;
}
}  // namespace sim
SIM_ROUNDED(__fadd, float, (float a, float b), sim::opaque(a) + sim::opaque(b))
SIM_ROUNDED(__fsub, float, (float a, float b), sim::opaque(a) - sim::opaque(b))
SIM_ROUNDED(__fmul, float, (float a, float b), sim::opaque(a) * sim::opaque(b))
SIM_ROUNDED(__fdiv, float, (float a, float b), sim::opaque(a) / sim::opaque(b))
SIM_ROUNDED(__fsqrt, float, (float a), sqrtf(sim::opaque(a)))
SIM_ROUNDED(__frcp, float, (float a), 1.0f / sim::opaque(a))
SIM_ROUNDED(__fmaf, float, (float a, float b, float c), fmaf(sim::opaque(a), sim::opaque(b), sim::opaque(c)))
SIM_ROUNDED(__dadd, double, (double a, double b), sim::opaque(a) + sim::opaque(b))
SIM_ROUNDED(__dsub, double, (double a, double b), sim::opaque(a) - sim::opaque(b))
SIM_ROUNDED(__dmul, double, (double a, double b), sim::opaque(a) * sim::opaque(b))
SIM_ROUNDED(__ddiv, double, (double a, double b), sim::opaque(a) / sim::opaque(b))
SIM_ROUNDED(__dsqrt, double, (double a), sqrt(sim::opaque(a)))
SIM_ROUNDED(__drcp, double, (double a), 1.0 / sim::opaque(a))
SIM_ROUNDED(__fma, double, (double a, double b, double c), fma(sim::opaque(a), sim::opaque(b), sim::opaque(c)))
SIM_FN float __frsqrt_rn(float x) {
    return rsqrtf(x);
}

// ---- conversions
// -----------------------------------------------------------------------------------------------------

namespace sim {
// To integers a device saturates, and turns NaN into 0 (32-bit) or the lowest value (64-bit).
template <class I, class F>
I to_integer(F value, F rounded) {
    if (value != value)
        return sizeof(I) == 8
                   ? (std::is_signed_v<I> ? std::numeric_limits<I>::min() : std::numeric_limits<I>::max() / 2 + 1)
                   : I(0);
    if (rounded <= static_cast<F>(std::numeric_limits<I>::min())) return std::numeric_limits<I>::min();
    if (rounded >= static_cast<F>(std::numeric_limits<I>::max())) return std::numeric_limits<I>::max();
    return static_cast<I>(rounded);
}
}  // namespace sim
#define SIM_TO_INTEGER(PREFIX, F, NAME, I)                               \
    SIM_FN I PREFIX##2##NAME##_rn(F x) {                                 \
        return sim::to_integer<I>(x, static_cast<F>(std::nearbyint(x))); \
    }                                                                    \
    SIM_FN I PREFIX##2##NAME##_rz(F x) {                                 \
        return sim::to_integer<I>(x, static_cast<F>(std::trunc(x)));     \
    }                                                                    \
    SIM_FN I PREFIX##2##NAME##_ru(F x) {                                 \
        return sim::to_integer<I>(x, static_cast<F>(std::ceil(x)));      \
    }                                                                    \
    SIM_FN I PREFIX##2##NAME##_rd(F x) {                                 \
        return sim::to_integer<I>(x, static_cast<F>(std::floor(x)));     \
    }
SIM_TO_INTEGER(__float, float, int, int)
SIM_TO_INTEGER(__float, float, uint, unsigned)
SIM_TO_INTEGER(__float, float, ll, long long)
SIM_TO_INTEGER(__float, float, ull, unsigned long long)
SIM_TO_INTEGER(__double, double, int, int)
SIM_TO_INTEGER(__double, double, uint, unsigned)
SIM_TO_INTEGER(__double, double, ll, long long)
SIM_TO_INTEGER(__double, double, ull, unsigned long long)
SIM_FN float __int2float_rn(int x) {
    return static_cast<float>(x);
}
SIM_FN float __uint2float_rn(unsigned x) {
    return static_cast<float>(x);
}
SIM_FN float __ll2float_rn(long long x) {
    return static_cast<float>(x);
}
SIM_FN float __ull2float_rn(unsigned long long x) {
    return static_cast<float>(x);
}
SIM_FN double __int2double_rn(int x) {
    return x;
}
SIM_FN double __uint2double_rn(unsigned x) {
    return x;
}
SIM_FN double __ll2double_rn(long long x) {
    return static_cast<double>(x);
}
SIM_FN float __double2float_rn(double x) {
    return static_cast<float>(x);
}
inline float __int2float_rz(int value) {
    SIM_WITH_ROUNDING(FE_TOWARDZERO, float, static_cast<float>(*const_cast<volatile int*>(&value)))
}
inline float __double2float_rz(double value) {
    SIM_WITH_ROUNDING(FE_TOWARDZERO, float, static_cast<float>(sim::opaque(value)))
}

namespace sim {
template <class T, class S>
SIM_FN T bits_as(S value) {
    static_assert(sizeof(T) == sizeof(S));
    T result;
    __builtin_memcpy(static_cast<void*>(&result), &value, sizeof(T));
    return result;
}
}  // namespace sim
SIM_FN int __float_as_int(float x) {
    return sim::bits_as<int>(x);
}
SIM_FN unsigned __float_as_uint(float x) {
    return sim::bits_as<unsigned>(x);
}
SIM_FN float __int_as_float(int x) {
    return sim::bits_as<float>(x);
}
SIM_FN float __uint_as_float(unsigned x) {
    return sim::bits_as<float>(x);
}
SIM_FN long long __double_as_longlong(double x) {
    return sim::bits_as<long long>(x);
}
SIM_FN double __longlong_as_double(long long x) {
    return sim::bits_as<double>(x);
}
SIM_FN int __double2hiint(double x) {
    return static_cast<int>(sim::bits_as<unsigned long long>(x) >> 32);
}
SIM_FN int __double2loint(double x) {
    return static_cast<int>(sim::bits_as<unsigned long long>(x));
}
SIM_FN double __hiloint2double(int hi, int lo) {
    return sim::bits_as<double>(static_cast<unsigned long long>(static_cast<unsigned>(hi)) << 32 |
                                static_cast<unsigned>(lo));
}

// ---- integers
// --------------------------------------------------------------------------------------------------------

SIM_FN int __clz(int x) {
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
SIM_FN int __clzll(long long x) {
    return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
SIM_FN int __popc(unsigned x) {
    return __builtin_popcount(x);
}
SIM_FN int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
SIM_FN int __ffs(int x) {
    return __builtin_ffs(x);
}
SIM_FN int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
SIM_FN int __ffsll(unsigned long long x) {
    return __builtin_ffsll(static_cast<long long>(x));
}
inline unsigned __brev(unsigned x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
SIM_FN unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
           __brev(static_cast<unsigned>(x >> 32));
}
namespace sim {

// prmt.b32; bit 3 of each selector spreads the byte's sign over it.
inline unsigned ptx_prmt(unsigned a, unsigned b, unsigned selector) {
    const unsigned long long both = static_cast<unsigned long long>(b) << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned s = selector >> (4 * i) & 0xf;
        unsigned byte = static_cast<unsigned>(both >> (8 * (s & 7))) & 0xff;
        if (s & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

}  // namespace sim

SIM_FN unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
    return sim::ptx_prmt(a, b, selector & 0x7777);
}
SIM_FN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(hi) << 32 | lo) << (shift & 31) >> 32);
}
SIM_FN unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
    return static_cast<unsigned>((static_cast<unsigned long long>(hi) << 32 | lo) >> (shift & 31));
}
SIM_FN unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
    return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
SIM_FN unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
    return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}
SIM_FN int __mulhi(int a, int b) {
    return static_cast<int>(static_cast<long long>(a) * b >> 32);
}
SIM_FN unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
SIM_FN long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
SIM_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
SIM_FN int __mul24(int a, int b) {
    return static_cast<int>(static_cast<unsigned>(a << 8 >> 8) * static_cast<unsigned>(b << 8 >> 8));
}
SIM_FN unsigned __umul24(unsigned a, unsigned b) {
    return (a & 0xffffff) * (b & 0xffffff);
}
SIM_FN unsigned __sad(int a, int b, unsigned c) {
    return (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b)
                  : static_cast<unsigned>(b) - static_cast<unsigned>(a)) +
           c;
}
SIM_FN unsigned __usad(unsigned a, unsigned b, unsigned c) {
    return (a > b ? a - b : b - a) + c;
}
SIM_FN int __hadd(int a, int b) {
    return static_cast<int>((static_cast<long long>(a) + b) >> 1);
}
SIM_FN int __rhadd(int a, int b) {
    return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1);
}
inline int __dp4a(int a, int b, int c) {
    unsigned sum = static_cast<unsigned>(c);
    for (int i = 0; i < 4; ++i)
        sum += static_cast<unsigned>(static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i));
    return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i) c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}
inline int __dp2a_lo(int a, int b, int c) {
    return c + static_cast<short>(a) * static_cast<signed char>(b) +
           static_cast<short>(a >> 16) * static_cast<signed char>(b >> 8);
}
inline int __dp2a_hi(int a, int b, int c) {
    return c + static_cast<short>(a) * static_cast<signed char>(b >> 16) +
           static_cast<short>(a >> 16) * static_cast<signed char>(b >> 24);
}

// Four bytes or two halves of a word at once.
#define SIM_BYTES(NAME, T, BITS, EXPRESSION)                                         \
    inline unsigned NAME(unsigned a, unsigned b) {                                   \
        unsigned result = 0;                                                         \
        for (int i = 0; i < 32; i += BITS) {                                         \
            const long x = static_cast<T>(a >> i), y = static_cast<T>(b >> i);       \
            result |= (static_cast<unsigned>(EXPRESSION) & ((1u << BITS) - 1)) << i; \
        }                                                                            \
        return result;                                                               \
    }
SIM_BYTES(__vadd4, u_int8_t, 8, x + y)
SIM_BYTES(__vsub4, u_int8_t, 8, x - y)
SIM_BYTES(__vmaxs4, int8_t, 8, x > y ? x : y)
SIM_BYTES(__vmins4, int8_t, 8, x < y ? x : y)
SIM_BYTES(__vmaxu4, u_int8_t, 8, x > y ? x : y)
SIM_BYTES(__vminu4, u_int8_t, 8, x < y ? x : y)
SIM_BYTES(__vabsdiffu4, u_int8_t, 8, x > y ? x - y : y - x)
SIM_BYTES(__vcmpeq4, u_int8_t, 8, x == y ? -1 : 0)
SIM_BYTES(__vcmpgtu4, u_int8_t, 8, x > y ? -1 : 0)
SIM_BYTES(__vaddss4, int8_t, 8, x + y > 127 ? 127 : x + y < -128 ? -128 : x + y)
SIM_BYTES(__vadd2, u_int16_t, 16, x + y)
SIM_BYTES(__vsub2, u_int16_t, 16, x - y)
SIM_BYTES(__vmaxs2, int16_t, 16, x > y ? x : y)
SIM_BYTES(__vmins2, int16_t, 16, x < y ? x : y)
#undef SIM_BYTES

// ---- clocks, traps
// ---------------------------------------------------------------------------------------------------

SIM_FN long long clock64() {
    return static_cast<long long>(__builtin_ia32_rdtsc());
}
SIM_FN unsigned long long globaltimer() {
    return static_cast<unsigned long long>(__builtin_ia32_rdtsc());
}
[[noreturn]] inline void __trap(SIM_SITE) {
    sim::fatal("trap", "__trap() was reached", SIM_HERE);
}
SIM_FN void __brkpt() {}
#define __builtin_assume(x) ((void)0)
SIM_FN unsigned __isGlobal(const void*) {
    return 1;
}
