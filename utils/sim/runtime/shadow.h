// What race mode keeps about a block's shared memory, and its looks at one access.
#pragma once

#include <string>
#include <vector>

#include "state.h"

namespace sim {

struct SharedArray {
    char* start;
    u32 bytes;
    const SharedSite* site;  // null: dynamic shared memory
};

struct SharedShadow {
    std::vector<SharedArray> arrays;
    std::vector<u8> written = std::vector<u8>(ARENA_BYTES);
    // Per 16 bytes: how many proxy fences there had been when a thread last wrote there.
    std::vector<u32> fences_before = std::vector<u32>(ARENA_BYTES / 16);
    u32 used = 0;  // bytes of `written` that may be set
};

// `owner` is the block in whose shared memory the access is; null for device memory.
void check_bounds(const BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc);
void check_initialised(const BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc);
void check_fenced(const BlockState* owner, const char* p, u32 bytes, const void* pc);
std::string array_name(const BlockState* owner, const char* p);
const char* access_word(int kind);

}  // namespace sim
