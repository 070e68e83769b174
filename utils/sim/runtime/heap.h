// The checking modes' heap: one region, with a byte of shadow per 8 bytes (race mode) that says how many are valid.
#pragma once

#include "state.h"

namespace sim {

constexpr size_t HEAP_BYTES = size_t(16) << 30;
extern char* heap_base;
extern u8* heap_valid;

void allow_region(char* p, size_t bytes);
void forbid_region(char* p, size_t bytes);

inline bool in_heap(const void* p) {
    return static_cast<size_t>(static_cast<const char*>(p) - heap_base) < HEAP_BYTES && heap_base;
}

}  // namespace sim
