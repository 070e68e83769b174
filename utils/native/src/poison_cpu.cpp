// Poison on the CPU: lay it, and see what is left of it.
#include <algorithm>
#include <cstring>

#include "poison.h"
#include "poison_pattern.h"
#include "threads.h"
#include "walker.h"

namespace {
constexpr int64_t kChunk = 1 << 20;  // bytes, a multiple of the pattern's 8-byte words
}

// Fills `nbytes` from `data` on with the poison of (kind, seed).
NATIVE_API int32_t native_poison_cpu(void* data, int64_t nbytes, int32_t kind, uint64_t seed) {
    for_each_chunk((nbytes + kChunk - 1) / kChunk, [&](int64_t chunk) {
        unsigned char* bytes = static_cast<unsigned char*>(data);
        const int64_t end = std::min(nbytes, (chunk + 1) * kChunk);
        for (int64_t i = chunk * kChunk; i < end; i += 8) {
            const uint64_t word = poison_word(kind, seed, uint64_t(i) / 8);
            std::memcpy(bytes + i, &word, std::min<int64_t>(8, end - i));
        }
    });
    return kOk;
}

// Which bytes of each span differ from the poison they were given.
NATIVE_API int32_t native_damage_cpu(const Span* spans, int32_t count, Damage* damage) {
    for (int32_t s = 0; s < count; ++s) {
        const unsigned char* bytes = static_cast<const unsigned char*>(spans[s].data);
        Damage found = {0, INT64_MAX, -1};
        for (int64_t i = 0; i < spans[s].nbytes; ++i) {
            if (holds_poison(spans[s].kind, spans[s].seed, i, bytes + i, 1)) continue;
            found.bytes += 1;
            found.first = std::min(found.first, i);
            found.last = i;
        }
        damage[s] = found;
    }
    return kOk;
}

// How many elements of the walk's `actual` hold the poison exactly.
NATIVE_API int32_t native_count_poison_cpu(const Walk* walk, int32_t kind, uint64_t seed, int64_t* count) {
    const int width = item_size(walk->actual_dtype);
    Walker<0> walker(*walk, 0, 1);
    *count = 0;
    for (int64_t i = 0; i < walk->count; ++i, walker.advance(*walk)) {
        const char* place = static_cast<const char*>(walk->actual) + walker.actual * width;
        *count += holds_poison(kind, seed, uint64_t(walker.actual) * width, place, width);
    }
    return kOk;
}
