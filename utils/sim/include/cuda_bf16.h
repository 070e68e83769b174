// bfloat16 for the simulator, bit for bit.
#pragma once

#include <cuda_runtime.h>
#include <sim/float16_conversions.h>

namespace sim {

SIM_FN float bfloat_value(u16 b) {
    return bits_as<float>(static_cast<u32>(b) << 16);
}
SIM_FN u16 bfloat_bits(float f) {
    if (f != f) return 0x7fff;
    const u32 bits = bits_as<u32>(f);
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
}  // namespace sim

SIM_FLOAT16_TYPES(__nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, sim::bfloat_bits, sim::bfloat_value)
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
struct __nv_bfloat162_raw {
    unsigned short x, y;
};

SIM_FLOAT16_CONVERSIONS(bfloat16, bfloat162, __nv_bfloat16, __nv_bfloat162, sim::bfloat_bits, sim::bfloat_value)
SIM_FLOAT16(__nv_bfloat16, __nv_bfloat162, __float2bfloat16, __bfloat162float)

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
