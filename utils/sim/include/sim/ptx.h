// What translated PTX (utils/sim/ptx.py) calls: values as bits, arithmetic by type, vector loads, matrix instructions.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <sim/matrix.h>
#include <sim/mbarrier.h>
#include <sim/warp.h>

namespace sim {

using Half = __half;
using Bfloat = __nv_bfloat16;
using Half2 = __half2;
using Bfloat2 = __nv_bfloat162;

// The bits of `value` read as a T: same size or narrower, or zero-extended; numbers written in the PTX are converted.
template <class T, class S>
SIM_FN T as(const S& value) {
    if constexpr (std::is_same_v<T, S>) {
        return value;
    } else if constexpr (std::is_same_v<T, bool>) {
        return static_cast<bool>(value);
    } else if constexpr (std::is_same_v<S, bool>) {
        return static_cast<T>(static_cast<int>(value));
    } else if constexpr (std::is_integral_v<S> && std::is_integral_v<T>) {
        return static_cast<T>(value);
    } else if constexpr (std::is_pointer_v<S> && std::is_integral_v<T>) {
        return static_cast<T>(reinterpret_cast<size_t>(value));
    } else {
        T result{};
        __builtin_memcpy(static_cast<void*>(&result), &value, sizeof(T) < sizeof(S) ? sizeof(T) : sizeof(S));
        return result;
    }
}

template <class V, class S>
SIM_FN void set(V& variable, const S& value) {
    variable = as<std::remove_volatile_t<V>>(value);
}

// An input operand by its constraint letter.
template <char C>
struct Input {
    template <class S>
    static auto of(const S& value) {
        if constexpr (C == 'r')
            return as<u32>(value);
        else if constexpr (C == 'l')
            return as<u64>(value);
        else if constexpr (C == 'h')
            return as<u16>(value);
        else if constexpr (C == 'f')
            return static_cast<float>(value);
        else if constexpr (C == 'd')
            return static_cast<double>(value);
        else
            return value;
    }
};

template <class S>
SIM_FN char* global_pointer(const S& value) {
    if constexpr (std::is_pointer_v<S>)
        return reinterpret_cast<char*>(const_cast<std::remove_const_t<std::remove_pointer_t<S>>*>(value));
    else
        return reinterpret_cast<char*>(as<size_t>(value));
}
template <class S>
SIM_FN char* shared_pointer(const S& value) {
    // A generic pointer given where the shared window is meant still works; a device would need the conversion.
    const u64 address = as<u64>(value);
    return address < (u64(1) << 20) ? shared_window() + address : reinterpret_cast<char*>(address);
}

// ---- arithmetic
// ------------------------------------------------------------------------------------------------------

template <class T>
using Unsigned = std::make_unsigned_t<T>;

#define SIM_PTX_WRAP(NAME, OP)                                                                 \
    template <class T>                                                                         \
    SIM_FN T ptx_##NAME(T a, T b) {                                                            \
        if constexpr (std::is_integral_v<T>)                                                   \
            return static_cast<T>(static_cast<Unsigned<T>>(a) OP static_cast<Unsigned<T>>(b)); \
        else                                                                                   \
            return a OP b;                                                                     \
    }
SIM_PTX_WRAP(add, +)
SIM_PTX_WRAP(sub, -)
SIM_PTX_WRAP(mul_lo, *)
#undef SIM_PTX_WRAP
template <class T>
SIM_FN T ptx_and(T a, T b) {
    return a & b;
}
template <class T>
SIM_FN T ptx_or(T a, T b) {
    return a | b;
}
template <class T>
SIM_FN T ptx_xor(T a, T b) {
    return a ^ b;
}
template <class T>
SIM_FN T ptx_div(T a, T b) {
    return a / b;
}
template <class T>
SIM_FN T ptx_rem(T a, T b) {
    return a % b;
}
template <class T>
SIM_FN T ptx_min(T a, T b) {
    if constexpr (std::is_arithmetic_v<T>)
        return ::min(a, b);
    else if constexpr (sizeof(T) == 4)
        return __hmin2(a, b);
    else
        return __hmin(a, b);
}
template <class T>
SIM_FN T ptx_max(T a, T b) {
    if constexpr (std::is_arithmetic_v<T>)
        return ::max(a, b);
    else if constexpr (sizeof(T) == 4)
        return __hmax2(a, b);
    else
        return __hmax(a, b);
}
template <class T>
SIM_FN T ptx_min_nan(T a, T b) {
    if constexpr (std::is_same_v<T, float>)
        return a != a || b != b ? __int_as_float(0x7fffffff) : ::min(a, b);
    else if constexpr (sizeof(T) == 4)
        return __hmin2_nan(a, b);
    else
        return __hmin_nan(a, b);
}
template <class T>
SIM_FN T ptx_max_nan(T a, T b) {
    if constexpr (std::is_same_v<T, float>)
        return a != a || b != b ? __int_as_float(0x7fffffff) : ::max(a, b);
    else if constexpr (sizeof(T) == 4)
        return __hmax2_nan(a, b);
    else
        return __hmax_nan(a, b);
}
template <class T>
SIM_FN T ptx_shl(T a, u32 n) {
    return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(static_cast<Unsigned<T>>(a) << n);
}
template <class T>
SIM_FN T ptx_shr(T a, u32 n) {
    return n >= 8 * sizeof(T) ? (a < 0 ? T(-1) : T(0)) : static_cast<T>(a >> n);
}
template <class T>
SIM_FN auto ptx_mul_wide(T a, T b) {
    using W = std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, long long, u64>,
                                 std::conditional_t<std::is_signed_v<T>, int, u32>>;
    return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
}
template <class T>
SIM_FN T ptx_mul_hi(T a, T b) {
    if constexpr (sizeof(T) == 8)
        return static_cast<T>(std::is_signed_v<T>
                                  ? static_cast<u64>(__mul64hi(static_cast<long long>(a), static_cast<long long>(b)))
                                  : __umul64hi(a, b));
    else
        return static_cast<T>(ptx_mul_wide(a, b) >> (8 * sizeof(T)));
}
template <class T>
SIM_FN T ptx_mad_lo(T a, T b, T c) {
    return ptx_add(ptx_mul_lo(a, b), c);
}
template <class T>
SIM_FN T ptx_mad_hi(T a, T b, T c) {
    return ptx_add(ptx_mul_hi(a, b), c);
}
template <class T, class W>
SIM_FN W ptx_mad_wide(T a, T b, W c) {
    return ptx_add(static_cast<W>(ptx_mul_wide(a, b)), c);
}
template <class T>
SIM_FN T ptx_fma(T a, T b, T c) {
    if constexpr (std::is_same_v<T, float>)
        return fmaf(a, b, c);
    else if constexpr (std::is_same_v<T, double>)
        return fma(a, b, c);
    else if constexpr (sizeof(T) == 4)
        return __hfma2(a, b, c);
    else
        return __hfma(a, b, c);
}
template <class T>
SIM_FN T ptx_neg(T a) {
    return -a;
}
template <class T>
SIM_FN T ptx_abs(T a) {
    if constexpr (std::is_arithmetic_v<T>)
        return a < 0 ? -a : std::is_floating_point_v<T> ? static_cast<T>(fabs(a)) : a;
    else if constexpr (sizeof(T) == 4)
        return __habs2(a);
    else
        return __habs(a);
}
template <class T>
SIM_FN T ptx_not(T a) {
    if constexpr (std::is_same_v<T, bool>)
        return !a;
    else
        return static_cast<T>(~a);
}
template <class T>
SIM_FN T ptx_rcp(T a) {
    return T(1) / a;
}
SIM_FN float ptx_sqrt(float a) {
    return sqrtf(a);
}
SIM_FN double ptx_sqrt(double a) {
    return sqrt(a);
}
SIM_FN float ptx_rsqrt(float a) {
    return rsqrtf(a);
}
SIM_FN double ptx_rsqrt(double a) {
    return rsqrt(a);
}
SIM_FN float ptx_ex2(float a) {
    return exp2f(a);
}
SIM_FN Half ptx_ex2(Half a) {
    return hexp2(a);
}
SIM_FN Half2 ptx_ex2(Half2 a) {
    return h2exp2(a);
}
SIM_FN Bfloat2 ptx_ex2(Bfloat2 a) {
    return h2exp2(a);
}
SIM_FN float ptx_lg2(float a) {
    return log2f(a);
}
SIM_FN float ptx_sin(float a) {
    return sinf(a);
}
SIM_FN float ptx_cos(float a) {
    return cosf(a);
}
SIM_FN float ptx_tanh(float a) {
    return tanhf(a);
}
SIM_FN Half ptx_tanh(Half a) {
    return htanh(a);
}
SIM_FN Half2 ptx_tanh(Half2 a) {
    return h2tanh(a);
}
SIM_FN Bfloat2 ptx_tanh(Bfloat2 a) {
    return h2tanh(a);
}
template <class T>
SIM_FN u32 ptx_popc(T a) {
    return static_cast<u32>(__builtin_popcountll(static_cast<Unsigned<T>>(a)));
}
template <class T>
SIM_FN u32 ptx_clz(T a) {
    return static_cast<u32>(sizeof(T) == 8 ? __clzll(static_cast<long long>(a)) : __clz(static_cast<int>(a)));
}
template <class T>
SIM_FN T ptx_brev(T a) {
    if constexpr (sizeof(T) == 8)
        return static_cast<T>(__brevll(a));
    else
        return static_cast<T>(__brev(a));
}
template <class T>
SIM_FN u32 ptx_bfind(T a) {
    const auto magnitude = static_cast<Unsigned<T>>(a < 0 ? ~a : a);
    return magnitude ? static_cast<u32>(63 - __builtin_clzll(magnitude)) : ~0u;
}
SIM_FN u32 ptx_lop3(u32 a, u32 b, u32 c, u32 table) {
    u32 result = 0;
    for (u32 i = 0; i < 8; ++i)
        if (table >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}
template <class T>
SIM_FN T ptx_bfe(T a, u32 start, u32 length) {
    start &= 0xff, length &= 0xff;
    constexpr u32 BITS = 8 * sizeof(T);
    if (length == 0) return 0;
    if (start >= BITS) return a < 0 ? T(-1) : T(0);
    if (start + length > BITS) length = BITS - start;
    return static_cast<T>(static_cast<T>(static_cast<Unsigned<T>>(a) << (BITS - start - length)) >> (BITS - length));
}
template <class T>
SIM_FN T ptx_bfi(T a, T b, u32 start, u32 length) {
    constexpr u32 BITS = 8 * sizeof(T);
    start &= 0xff, length &= 0xff;
    if (start >= BITS || length == 0) return b;
    const T mask = static_cast<T>((length >= BITS ? ~T(0) : (T(1) << length) - 1) << start);
    return static_cast<T>((b & ~mask) | (static_cast<T>(a << start) & mask));
}

#define SIM_COMPARE(NAME, EXPRESSION)      \
    template <class T>                     \
    SIM_FN bool compare_##NAME(T a, T b) { \
        return EXPRESSION;                 \
    }
SIM_COMPARE(eq, a == b)
SIM_COMPARE(ne, a<b || a> b)
SIM_COMPARE(lt, a < b)
SIM_COMPARE(le, a <= b)
SIM_COMPARE(gt, a > b)
SIM_COMPARE(ge, a >= b)
SIM_COMPARE(lo, a < b)
SIM_COMPARE(ls, a <= b)
SIM_COMPARE(hi, a > b)
SIM_COMPARE(hs, a >= b)
SIM_COMPARE(equ, !(a < b || a > b))
SIM_COMPARE(neu, !(a == b))
SIM_COMPARE(ltu, !(a >= b))
SIM_COMPARE(leu, !(a > b))
SIM_COMPARE(gtu, !(a <= b))
SIM_COMPARE(geu, !(a < b))
#undef SIM_COMPARE

// ---- conversions
// -----------------------------------------------------------------------------------------------------

enum class Rounding { rn, rz, rm, rp, rni, rzi, rmi, rpi };

// TF32 keeps 10 bits of the fraction; rna rounds half away from zero, as cvt.rna.tf32.f32 does.
SIM_FN float to_tf32_rna(float x) {
    const u32 bits = bits_as<u32>(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x : bits_as<float>((bits + 0x1000u) & ~0x1fffu);
}
SIM_FN float to_tf32_rn(float x) {
    const u32 bits = bits_as<u32>(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x : bits_as<float>((bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu);
}
SIM_FN float to_tf32_rz(float x) {
    return bits_as<float>(bits_as<u32>(x) & ~0x1fffu);
}

template <class T, class S>
T convert(S value, Rounding r, bool saturate) {
    if constexpr (std::is_integral_v<S> && std::is_integral_v<T>) {
        if (saturate)
            return static_cast<T>(
                ::max(static_cast<long long>(std::numeric_limits<T>::min()),
                      ::min(static_cast<long long>(value), static_cast<long long>(std::numeric_limits<T>::max()))));
        return static_cast<T>(value);
    } else if constexpr (std::is_integral_v<T>) {
        const double x = static_cast<double>(static_cast<double>(value));
        const double rounded = r == Rounding::rni || r == Rounding::rn ? std::nearbyint(x)
                               : r == Rounding::rmi                    ? std::floor(x)
                               : r == Rounding::rpi                    ? std::ceil(x)
                                                                       : std::trunc(x);
        return to_integer<T>(x, rounded);
    } else {
        double x = static_cast<double>(value);
        if (r == Rounding::rni) x = std::nearbyint(x);
        if (r == Rounding::rzi) x = std::trunc(x);
        if (r == Rounding::rmi) x = std::floor(x);
        if (r == Rounding::rpi) x = std::ceil(x);
        if (saturate) x = x != x || x < 0 ? 0 : x > 1 ? 1 : x;
        if constexpr (std::is_same_v<T, Half>) {
            if (r == Rounding::rz) return __float2half_rz(narrow_odd(x));
            if (r == Rounding::rm) return __float2half_rd(narrow_odd(x));
            if (r == Rounding::rp) return __float2half_ru(narrow_odd(x));
            return Half(x);
        } else if constexpr (std::is_same_v<T, Bfloat>) {
            if (r == Rounding::rz) return __float2bfloat16_rz(narrow_odd(x));
            return Bfloat(x);
        } else if constexpr (std::is_same_v<T, float>) {
            if (r == Rounding::rz) return __double2float_rz(x);
            return static_cast<float>(x);
        } else {
            return static_cast<T>(x);
        }
    }
}
// cvt.rn.f16x2.f32 d, a, b puts a in the upper half.
template <class P>
SIM_FN P pack_pair(float a, float b) {
    return P(decltype(P::x)(b), decltype(P::x)(a));
}

template <class E>
SIM_FN u16 pack_fp8(float a, float b) {
    return static_cast<u16>(E(a).bits << 8 | E(b).bits);
}

// ---- memory
// ----------------------------------------------------------------------------------------------------------

template <class T, int N>
struct alignas(sizeof(T) * N) Several {
    T value[N];
};
template <class T, int N>
SIM_RAW Several<T, N> vector_load(const T* address, const char* file, int line) {
    check_aligned(address, sizeof(T) * N, file, line);
    SIM_ANNOUNCE(address, sizeof(T) * N, READ);
    Several<T, N> result;
    __builtin_memcpy(static_cast<void*>(&result), address, sizeof(result));
    return result;
}
template <class T, int N>
SIM_RAW void vector_store(T* address, Several<T, N> value, const char* file, int line) {
    check_aligned(address, sizeof(T) * N, file, line);
    SIM_ANNOUNCE(address, sizeof(T) * N, WRITE);
    __builtin_memcpy(static_cast<void*>(address), &value, sizeof(value));
}
template <class T>
SIM_FN T ordered_load(const T* address) {
    return atomic_load(address);
}
template <class T>
SIM_FN void ordered_store(T* address, T value) {
    atomic_store(address, value);
}

#define SIM_PTX_ATOMIC(NAME, EXPRESSION)                                             \
    template <class T>                                                               \
    SIM_FN T ptx_atomic_##NAME(T* address, T operand) {                              \
        return atomic_update(address, [operand](T old) -> T { return EXPRESSION; }); \
    }
SIM_PTX_ATOMIC(add, ptx_add(old, operand))
SIM_PTX_ATOMIC(min, ptx_min(old, operand))
SIM_PTX_ATOMIC(max, ptx_max(old, operand))
SIM_PTX_ATOMIC(and, old& operand)
SIM_PTX_ATOMIC(or, old | operand)
SIM_PTX_ATOMIC(xor, old ^ operand)
SIM_PTX_ATOMIC(exch, ((void)old, operand))
SIM_PTX_ATOMIC(inc, old >= operand ? T(0) : old + 1)
SIM_PTX_ATOMIC(dec, old == 0 || old > operand ? operand : old - 1)
#undef SIM_PTX_ATOMIC
template <class T>
SIM_FN T ptx_atomic_cas(T* address, T compare, T value) {
    return compare_and_swap<CAS>(address, compare, value);
}

// ---- shuffles in PTX's own form
// --------------------------------------------------------------------------------------

enum class Mode { idx, up, down, bfly };
struct Shuffled {
    u32 value;
    bool inside;
};
inline Shuffled ptx_shuffle(Mode mode, u32 mask, u32 value, u32 b, u32 c, const char* file, int line) {
    const u32 lane = lane_id(), segment = c >> 8 & 31, clamp = c & 31;
    const int limit = static_cast<int>((lane & segment) | (clamp & ~segment)), low = static_cast<int>(lane & segment);
    b &= 31;
    int source = 0;
    bool inside = false;
    switch (mode) {
        case Mode::up:
            source = static_cast<int>(lane) - static_cast<int>(b), inside = source >= limit;
            break;
        case Mode::down:
            source = static_cast<int>(lane + b), inside = source <= limit;
            break;
        case Mode::bfly:
            source = static_cast<int>(lane ^ b), inside = source <= limit;
            break;
        case Mode::idx:
            source = low | static_cast<int>(b & ~segment), inside = source <= limit;
            break;
    }
    if (!inside) source = static_cast<int>(lane);
    const Slot& slot = exchange(mask, value, WarpKind::SHUFFLE, file, line);
    if (!(slot.lanes >> source & 1))
        complain("inactive_lane", "the shuffle reads a lane that takes no part in it", file, line);
    return {static_cast<u32>(slot.value[source]), inside};
}

}  // namespace sim
