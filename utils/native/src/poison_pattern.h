// The poison: bytes that say "nobody wrote here".
//
// Every 8-byte word, counted from the tensor's first byte, is drawn from (seed, word index), so that no fixed value can
// be mistaken for it and none can be prepared. In the wide pattern each 16-bit half lies in 0x7ff1..0x7ffe: read as
// fp16, bf16, fp32, fp64 or complex it is a NaN with a payload no arithmetic produces (hardware NaNs are 0x7fff.. or
// 0x7fc0.. or 0x7e00), read as an integer of 16 bits or more it is a huge number of no meaning. Formats of one byte
// get their own: NaN where the format has one, any byte for int8 and uint8 (one such value can never be
// improbable, a whole tensor of them can), anything but 0 and 1 for bool.
#pragma once

#include "elements.h"

enum PoisonKind : int32_t {
    kPoisonNone = -1,
    kPoisonWide = 0,
    kPoisonBytes,
    kPoisonBool,
    kPoisonF8,
    kPoisonFnuz,
    kPoisonE8M0
};

HD int32_t poison_kind(int32_t dtype) {
    switch (dtype) {
        case kF8E4M3:
        case kF8E5M2:
            return kPoisonF8;
        case kF8E4M3Fnuz:
        case kF8E5M2Fnuz:
            return kPoisonFnuz;
        case kF8E8M0:
            return kPoisonE8M0;
        case kI8:
        case kU8:
            return kPoisonBytes;
        case kBool:
            return kPoisonBool;
        default:
            return kPoisonWide;
    }
}

// 64 bits from a seed and a place. The seed comes well mixed (utils/native/poison.py), so that one round over 32 bits
// is enough here and filling memory stays bound by memory. The round is that of Chris Wellons' hash prospector
// (0x7feb352d, 0x846ca68b): every input bit reaches every output bit.
HD uint64_t scramble(uint64_t seed, uint64_t index) {
    uint32_t x = uint32_t(index) * 0x9e3779b1u + uint32_t(index >> 32) * 0x85ebca77u + uint32_t(seed);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x ^= x >> 16;
    uint32_t y = (x ^ uint32_t(seed >> 32)) * 0xc2b2ae3du;
    y ^= y >> 15;
    return uint64_t(y) << 32 | x;
}

HD uint64_t poison_word(int32_t kind, uint64_t seed, uint64_t index) {
    const uint64_t random = scramble(seed, index);
    switch (kind) {
        case kPoisonBytes:
            return random;
        case kPoisonBool:
            return random | 0x0202020202020202ull;
        case kPoisonF8:
            return (random & 0x8080808080808080ull) | 0x7f7f7f7f7f7f7f7full;
        case kPoisonFnuz:
            return 0x8080808080808080ull;
        case kPoisonE8M0:
            return ~0ull;
        default:
            break;
    }
    // Low nibbles in 1..14: the 3 random bits give 0..7, the fourth 0..6 or so on top, so 0 and 15 never occur.
    const uint64_t three = random & 0x0007000700070007ull;
    const uint64_t more = (random >> 3) & 0x0001000100010001ull;
    return 0x7ff17ff17ff17ff1ull + three + more * 6;
}

// Whether the `width` bytes at `place`, `offset` bytes after the tensor's first, still hold the poison.
HD bool holds_poison(int32_t kind, uint64_t seed, uint64_t offset, const void* place, int width) {
    const unsigned char* bytes = static_cast<const unsigned char*>(place);
    for (int i = 0; i < width; ++i) {
        const uint64_t at = offset + i;
        const uint64_t word = poison_word(kind, seed, at / 8);
        if (bytes[i] != static_cast<unsigned char>(word >> (at % 8 * 8))) return false;
    }
    return true;
}
