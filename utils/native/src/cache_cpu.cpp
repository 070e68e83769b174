// Flushes the CPU's caches, so that CPU timings start as cold as GPU timings do.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "platform.h"

// Bytes that flushing sweeps: twice the last cache, between 16 MiB (where it is unknown) and 256 MiB.
NATIVE_API int64_t native_flush_bytes_cpu() {
    int64_t last = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    last = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
    return std::clamp<int64_t>(2 * last, 16 << 20, 256 << 20);
}

NATIVE_API int32_t native_flush_cpu() {
    static std::vector<unsigned char> buffer;
    static unsigned char turn = 0;
    try {
        buffer.resize(native_flush_bytes_cpu());
    } catch (const std::bad_alloc&) {
        return native_fail(kOutOfMemory, "no memory for the buffer that flushes the CPU's caches");
    }
    std::memset(buffer.data(), ++turn, buffer.size());
    // The sweep must not be optimised away: nobody reads the buffer.
    asm volatile("" : : "r"(buffer.data()) : "memory");
    return kOk;
}
