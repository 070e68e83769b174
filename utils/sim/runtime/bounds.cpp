// Bounds, exact to the byte, and what was never written. asan mode leaves the looking to AddressSanitizer, which is
// told which bytes of a block's shared memory are arrays. Race mode looks itself, on every access (race.cpp): a byte of
// shadow per 8 bytes of the heap says how many of them are valid (heap.cpp), one per byte of shared memory whether it
// was written.
#include "shadow.h"

#include <cstring>

#include "heap.h"

namespace sim {

#if SIM_MODE != 0

// Only the block's own arrays may be touched, each exactly.
void bounds_block_begin(BlockState* b) {
#if SIM_MODE == 1
    forbid_region(b->arena, ARENA_BYTES);
#else
    if (!b->shadow) b->shadow = new SharedShadow;
    SharedShadow& s = *b->shadow;
    std::memset(s.written.data(), 0, s.used);
    s.used = 0;
    for (const SharedArray& a : s.arrays) forbid_region(a.start, a.bytes);
    s.arrays.clear();
    if (b->launch->config.shared) s.arrays.push_back({b->dynamic, static_cast<u32>(b->launch->config.shared), nullptr});
#endif
    if (b->launch->config.shared) allow_region(b->dynamic, b->launch->config.shared);
}

void bounds_shared_site(BlockState* b, const SharedSite* site) {
    char* start = b->statics + site->offset;
#if SIM_MODE == 2
    b->shadow->arrays.push_back({start, site->bytes, site});
#endif
    allow_region(start, site->bytes);
}

// The others of a cluster must not touch what a block that has ended leaves behind.
void bounds_block_end(BlockState* b) {
#if SIM_MODE == 1
    forbid_region(b->arena, ARENA_BYTES);
#else
    for (const SharedArray& a : b->shadow->arrays) forbid_region(a.start, a.bytes);
#endif
}

#endif

#if SIM_MODE == 2

const char* access_word(int kind) {
    return (kind & 3) == READ ? "read" : (kind & 3) == WRITE ? "write" : "atomic";
}

std::string array_name(const BlockState* owner, const char* p) {
    for (const SharedArray& a : owner->shadow->arrays)
        if (p >= a.start && p < a.start + a.bytes && a.site)
            return std::string("the shared array `") + a.site->name + "`";
    return "dynamic shared memory";
}

void check_bounds(BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc) {
    const size_t at = static_cast<size_t>(p - heap_base);
    for (size_t byte = at; byte < at + bytes;) {
        const u32 valid = heap_valid[byte / 8], inside = static_cast<u32>(byte % 8);
        if (valid <= inside) {
            std::string text =
                std::string(access_word(kind)) + " of " + std::to_string(bytes) + " byte" + (bytes == 1 ? "" : "s");
            if (owner) {
                const SharedArray* nearest = nullptr;
                long best = 1 << 30;
                for (const SharedArray& a : owner->shadow->arrays) {
                    const long distance = p >= a.start + a.bytes ? p - (a.start + a.bytes)
                                          : p < a.start          ? a.start - p
                                                                 : 0;
                    if (distance < best) best = distance, nearest = &a;
                }
                if (nearest) {
                    const std::string name = nearest->site
                                                 ? std::string("the shared array `") + nearest->site->name + "`"
                                                 : std::string("dynamic shared memory");
                    text += p < nearest->start ? " " + std::to_string(best) + " bytes before "
                            : p < nearest->start + nearest->bytes
                                ? " across the end of "
                                : " " + std::to_string(best) + " bytes after the end of ";
                    text += name + " of " + std::to_string(nearest->bytes) + " bytes";
                } else {
                    text += " outside every shared array of the kernel";
                }
            } else {
                const char* start;
                size_t size;
                bool freed;
                if (find_allocation(p, &start, &size, &freed)) {
                    if (freed)
                        text += " in memory that was freed (" + std::to_string(size) + " bytes)";
                    else if (p < start)
                        text += ", " + std::to_string(start - p) + " bytes before an allocation of " +
                                std::to_string(size) + " bytes";
                    else if (p < start + size)
                        text += " across the end of an allocation of " + std::to_string(size) + " bytes";
                    else
                        text += ", " + std::to_string(p - (start + size)) +
                                " bytes after the end of an allocation of " + std::to_string(size) + " bytes";
                } else {
                    text += " outside every allocation";
                }
            }
            add_report(report_here("out_of_bounds", text, {nullptr, 0, pc}));
            return;
        }
        byte = byte / 8 * 8 + 8;
    }
}

void check_initialised(BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc) {
    SharedShadow& s = *owner->shadow;
    const size_t at = static_cast<size_t>(p - owner->arena);
    u8* flags = s.written.data() + at;
    if (at + bytes > s.written.size()) return;
    if ((kind & 3) != WRITE && !(kind & STORE)) {
        for (u32 i = 0; i < bytes; ++i) {
            if (flags[i]) continue;
            if (heap_valid[static_cast<size_t>(p - heap_base) / 8])
                add_report(report_here(
                    "uninitialised_shared",
                    std::string(access_word(kind)) + " of " + array_name(owner, p) + " before any thread wrote there",
                    {nullptr, 0, pc}));
            break;
        }
    }
    if ((kind & 3) != READ && !(kind & LOAD)) {
        std::memset(flags, 1, bytes);
        const u32 end = static_cast<u32>(at + bytes);
        if (end > s.used) s.used = end;
    }
}

#endif

}  // namespace sim
