// bfloat16 for the simulator, bit for bit.
#pragma once

#include <cuda_runtime.h>
#include <sim/float16.h>

namespace sim {

SIM_FN float bfloat_value(u16 b) {
    return bits_as<float>(static_cast<u32>(b) << 16);
}
SIM_FN u16 bfloat_bits(float f) {
    if (f != f) return 0x7fff;
    const u32 bits = bits_as<u32>(f);
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline u16 bfloat_directed(float f, int direction) {
    u16 b = bfloat_bits(f);
    if (f != f || std::isinf(f)) return b;
    const float v = bfloat_value(b);
    const int want = direction ? direction : f < 0 ? 1 : -1;
    if (want < 0 && v > f) b = step_down(b);
    if (want > 0 && v < f) b = step_up(b);
    return b;
}

}  // namespace sim

SIM_FLOAT16_TYPES(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, sim::bfloat_bits, sim::bfloat_value)
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
struct __nv_bfloat162_raw {
    unsigned short x, y;
};

SIM_FN float __bfloat162float(__nv_bfloat16 b) {
    return sim::bfloat_value(b.__x);
}
SIM_FN __nv_bfloat16 __float2bfloat16(float f) {
    return __nv_bfloat16::from_bits(sim::bfloat_bits(f));
}
SIM_FN __nv_bfloat16 __float2bfloat16_rn(float f) {
    return __float2bfloat16(f);
}
SIM_FN __nv_bfloat16 __float2bfloat16_rz(float f) {
    return __nv_bfloat16::from_bits(sim::bfloat_directed(f, 0));
}
SIM_FN __nv_bfloat16 __float2bfloat16_rd(float f) {
    return __nv_bfloat16::from_bits(sim::bfloat_directed(f, -1));
}
SIM_FN __nv_bfloat16 __float2bfloat16_ru(float f) {
    return __nv_bfloat16::from_bits(sim::bfloat_directed(f, 1));
}
SIM_FN __nv_bfloat16 __double2bfloat16(double d) {
    return __nv_bfloat16(d);
}
SIM_FLOAT16(__nv_bfloat16, __nv_bfloat162, __float2bfloat16, __bfloat162float)

SIM_FN __nv_bfloat162 __float2bfloat162_rn(float f) {
    return __nv_bfloat162(__float2bfloat16(f), __float2bfloat16(f));
}
SIM_FN __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__float2bfloat16(a), __float2bfloat16(b));
}
SIM_FN __nv_bfloat162 __float22bfloat162_rn(float2 v) {
    return __floats2bfloat162_rn(v.x, v.y);
}
SIM_FN float2 __bfloat1622float2(__nv_bfloat162 v) {
    return float2{__bfloat162float(v.x), __bfloat162float(v.y)};
}
SIM_FN __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 b) {
    return __nv_bfloat162(b, b);
}
SIM_FN __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
SIM_FN __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
SIM_FN __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) {
    return v.x;
}
SIM_FN __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) {
    return v.y;
}
SIM_FN float __low2float(__nv_bfloat162 v) {
    return __bfloat162float(v.x);
}
SIM_FN float __high2float(__nv_bfloat162 v) {
    return __bfloat162float(v.y);
}
SIM_FN __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) {
    return __nv_bfloat162(v.x, v.x);
}
SIM_FN __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) {
    return __nv_bfloat162(v.y, v.y);
}
SIM_FN __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.x, b.x);
}
SIM_FN __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) {
    return __nv_bfloat162(a.y, b.y);
}
SIM_FN __nv_bfloat162 __lowhigh2highlow(__nv_bfloat162 v) {
    return __nv_bfloat162(v.y, v.x);
}
SIM_FN short __bfloat16_as_short(__nv_bfloat16 b) {
    return static_cast<short>(b.__x);
}
SIM_FN unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) {
    return b.__x;
}
SIM_FN __nv_bfloat16 __short_as_bfloat16(short s) {
    return __nv_bfloat16::from_bits(static_cast<unsigned short>(s));
}
SIM_FN __nv_bfloat16 __ushort_as_bfloat16(unsigned short s) {
    return __nv_bfloat16::from_bits(s);
}
SIM_FN int __bfloat162int_rn(__nv_bfloat16 b) {
    return __float2int_rn(__bfloat162float(b));
}
SIM_FN int __bfloat162int_rz(__nv_bfloat16 b) {
    return __float2int_rz(__bfloat162float(b));
}
SIM_FN __nv_bfloat16 __int2bfloat16_rn(int i) {
    return __nv_bfloat16(i);
}
SIM_FN __nv_bfloat16 __uint2bfloat16_rn(unsigned i) {
    return __nv_bfloat16(i);
}
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
