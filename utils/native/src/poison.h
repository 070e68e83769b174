// A span of bytes under poison, and what has become of it; mirrored in utils/native/poison.py.
#pragma once

#include "platform.h"

struct Span {
    void* data;
    int64_t nbytes;
    uint64_t seed;
    int32_t kind;
    int32_t reserved;
};

struct Damage {
    int64_t bytes;        // how many bytes differ
    int64_t first, last;  // offsets of the first and the last of them; meaningless when there is none
};
