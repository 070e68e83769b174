// How the bytes of one element become a number, for every dtype, on host and device alike.
//
// Small formats are decoded by arithmetic on bits, so that the CPU and the GPU give the same numbers by construction.
// Formats: IEEE 754 binary16; bfloat16; the 8-bit formats of "FP8 Formats for Deep Learning" (arXiv:2209.05433), their
// fnuz variants (one zero, NaN = 0x80, bias one higher), and the power-of-two scale e8m0 of the OCP MX specification.
#pragma once

#include <cstring>

#include "platform.h"
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

// The codes are part of the ABI: utils/native/tensors.py holds the same table.
enum DType : int32_t {
    kF64 = 0,
    kF32,
    kF16,
    kBF16,
    kF8E4M3,
    kF8E5M2,
    kF8E4M3Fnuz,
    kF8E5M2Fnuz,
    kF8E8M0,
    kC128,
    kC64,
    kC32,
    kI8,
    kI16,
    kI32,
    kI64,
    kU8,
    kU16,
    kU32,
    kU64,
    kBool,
    kDTypeCount,
};

enum class Kind { real, complex, integer };

HD float float_from_bits(uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
#endif
}

HD float decode_f16(uint16_t bits) {
#if defined(__CUDA_ARCH__)
    return __half2float(__ushort_as_half(bits));
#else
    const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
    const uint32_t rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) return float_from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    // Shifted into fp32 position the exponent is 112 too small, for subnormals as well: one exact product repairs both.
    const float magnitude = float_from_bits(rest << 13) * 0x1p112f;
    return sign ? -magnitude : magnitude;
#endif
}

HD float decode_bf16(uint16_t bits) {
    return float_from_bits(uint32_t(bits) << 16);
}

// `shift` moves the 7 magnitude bits into fp32 position, `scale` repairs the exponent's bias.
HD float decode_f8(uint8_t bits, int shift, float scale) {
    const float magnitude = float_from_bits(uint32_t(bits & 0x7fu) << shift) * scale;
    return bits & 0x80u ? -magnitude : magnitude;
}

HD float quiet_nan() {
    return float_from_bits(0x7fc00000u);
}

HD float decode_f8e4m3(uint8_t bits) {
    return (bits & 0x7fu) == 0x7fu ? quiet_nan() : decode_f8(bits, 20, 0x1p120f);
}

// e5m2 is the upper byte of binary16, infinities and NaN included.
HD float decode_f8e5m2(uint8_t bits) {
    return decode_f16(uint16_t(bits) << 8);
}

HD float decode_f8e4m3fnuz(uint8_t bits) {
    return bits == 0x80u ? quiet_nan() : decode_f8(bits, 20, 0x1p119f);
}

HD float decode_f8e5m2fnuz(uint8_t bits) {
    return bits == 0x80u ? quiet_nan() : decode_f8(bits, 21, 0x1p111f);
}

HD float decode_f8e8m0(uint8_t bits) {
    if (bits == 0xffu) return quiet_nan();
    return float_from_bits(bits == 0 ? 0x00400000u : uint32_t(bits) << 23);
}

template <class Part>
struct Complex {
    Part re, im;
};

// Element<D>: Raw, the type as stored; Fast, the narrowest float type that holds every value exactly (double for
// integers, where it rounds beyond 2^53 and only sums are made of it); decode for real formats and complex parts.
template <DType D>
struct Element;

#define REAL_ELEMENT(CODE, RAW, FAST, DECODE)                        \
    template <>                                                      \
    struct Element<CODE> {                                           \
        using Raw = RAW;                                             \
        using Fast = FAST;                                           \
        static constexpr Kind kind = Kind::real;                     \
        static HD Fast decode(Raw raw) { return Fast(DECODE(raw)); } \
    };
REAL_ELEMENT(kF64, double, double, )
REAL_ELEMENT(kF32, float, float, )
REAL_ELEMENT(kF16, uint16_t, float, decode_f16)
REAL_ELEMENT(kBF16, uint16_t, float, decode_bf16)
REAL_ELEMENT(kF8E4M3, uint8_t, float, decode_f8e4m3)
REAL_ELEMENT(kF8E5M2, uint8_t, float, decode_f8e5m2)
REAL_ELEMENT(kF8E4M3Fnuz, uint8_t, float, decode_f8e4m3fnuz)
REAL_ELEMENT(kF8E5M2Fnuz, uint8_t, float, decode_f8e5m2fnuz)
REAL_ELEMENT(kF8E8M0, uint8_t, float, decode_f8e8m0)
#undef REAL_ELEMENT

#define COMPLEX_ELEMENT(CODE, PART, FAST, DECODE)                       \
    template <>                                                         \
    struct Element<CODE> {                                              \
        using Raw = Complex<PART>;                                      \
        using Fast = FAST;                                              \
        static constexpr Kind kind = Kind::complex;                     \
        static HD Fast decode(PART part) { return Fast(DECODE(part)); } \
    };
COMPLEX_ELEMENT(kC128, double, double, )
COMPLEX_ELEMENT(kC64, float, float, )
COMPLEX_ELEMENT(kC32, uint16_t, float, decode_f16)
#undef COMPLEX_ELEMENT

#define INTEGER_ELEMENT(CODE, RAW)                  \
    template <>                                     \
    struct Element<CODE> {                          \
        using Raw = RAW;                            \
        using Fast = double;                        \
        static constexpr Kind kind = Kind::integer; \
    };
INTEGER_ELEMENT(kI8, int8_t)
INTEGER_ELEMENT(kI16, int16_t)
INTEGER_ELEMENT(kI32, int32_t)
INTEGER_ELEMENT(kI64, int64_t)
INTEGER_ELEMENT(kU8, uint8_t)
INTEGER_ELEMENT(kU16, uint16_t)
INTEGER_ELEMENT(kU32, uint32_t)
INTEGER_ELEMENT(kU64, uint64_t)
// A bool is its byte: anything but 0 and 1 is malformed, and is shown as the number it is.
INTEGER_ELEMENT(kBool, uint8_t)
#undef INTEGER_ELEMENT

// CALL(D) for the dtype with run-time code `dtype`.
// clang-format off
#define DTYPE_CASE(D, CALL) case D: CALL(D); break;
#define DTYPE_TABLE(ROW, CALL) \
    ROW(kF64, CALL) ROW(kF32, CALL) ROW(kF16, CALL) ROW(kBF16, CALL) ROW(kF8E4M3, CALL) ROW(kF8E5M2, CALL) ROW(kF8E4M3Fnuz, CALL) \
    ROW(kF8E5M2Fnuz, CALL) ROW(kF8E8M0, CALL) ROW(kC128, CALL) ROW(kC64, CALL) ROW(kC32, CALL) ROW(kI8, CALL) ROW(kI16, CALL) \
    ROW(kI32, CALL) ROW(kI64, CALL) ROW(kU8, CALL) ROW(kU16, CALL) ROW(kU32, CALL) ROW(kU64, CALL) ROW(kBool, CALL)
#define FOR_DTYPE(dtype, CALL) \
    switch (dtype) { DTYPE_TABLE(DTYPE_CASE, CALL) default: break; }
// clang-format on

HD int item_size(int32_t dtype) {
    switch (dtype) {
        case kC128:
            return 16;
        case kF64:
        case kC64:
        case kI64:
        case kU64:
            return 8;
        case kF32:
        case kC32:
        case kI32:
        case kU32:
            return 4;
        case kF16:
        case kBF16:
        case kI16:
        case kU16:
            return 2;
        default:
            return 1;
    }
}

HD Kind kind_of(int32_t dtype) {
    if (dtype <= kF8E8M0) return Kind::real;
    return dtype <= kC32 ? Kind::complex : Kind::integer;
}

HD bool is_unsigned(int32_t dtype) {
    return dtype >= kU8;
}

// One element, whatever its dtype: as complex double, and for integers the exact 64 bits beside it.
struct Value {
    double re, im;
    uint64_t whole;
};

template <class Raw>
HD Value integer_value(const void* place) {
    const Raw raw = *static_cast<const Raw*>(place);
    return {double(raw), 0.0, uint64_t(int64_t(raw))};
}

template <DType D>
HD Value real_value(const void* place) {
    using E = Element<D>;
    return {double(E::decode(*static_cast<const typename E::Raw*>(place))), 0.0, 0};
}

template <DType D>
HD Value complex_value(const void* place) {
    using E = Element<D>;
    const auto raw = *static_cast<const typename E::Raw*>(place);
    return {double(E::decode(raw.re)), double(E::decode(raw.im)), 0};
}

HD Value load_value(int32_t dtype, const void* place) {
    switch (dtype) {
        case kF64:
            return real_value<kF64>(place);
        case kF32:
            return real_value<kF32>(place);
        case kF16:
            return real_value<kF16>(place);
        case kBF16:
            return real_value<kBF16>(place);
        case kF8E4M3:
            return real_value<kF8E4M3>(place);
        case kF8E5M2:
            return real_value<kF8E5M2>(place);
        case kF8E4M3Fnuz:
            return real_value<kF8E4M3Fnuz>(place);
        case kF8E5M2Fnuz:
            return real_value<kF8E5M2Fnuz>(place);
        case kF8E8M0:
            return real_value<kF8E8M0>(place);
        case kC128:
            return complex_value<kC128>(place);
        case kC64:
            return complex_value<kC64>(place);
        case kC32:
            return complex_value<kC32>(place);
        case kI8:
            return integer_value<int8_t>(place);
        case kI16:
            return integer_value<int16_t>(place);
        case kI32:
            return integer_value<int32_t>(place);
        case kI64:
            return integer_value<int64_t>(place);
        case kU16:
            return integer_value<uint16_t>(place);
        case kU32:
            return integer_value<uint32_t>(place);
        case kU64:
            return integer_value<uint64_t>(place);
        default:
            return integer_value<uint8_t>(place);
    }
}
