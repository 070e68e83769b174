// Bounds, exact to the byte, and what was never written. asan mode leaves the looking to AddressSanitizer, which is
// told which bytes of a block's shared memory are arrays. Race mode looks itself, on every access (race.cpp): a byte of
// shadow per 8 bytes of the heap says how many of them are valid (heap.cpp), one per byte of shared memory whether it
// was written.
#include "shadow.h"

#include <sim/mbarrier.h>

#include <algorithm>
#include <cstring>

#include "heap.h"
#include "race.h"

namespace sim {

#if SIM_MODE == 2
static u32 proxy_fences = 0;  // so far, in all blocks; each block's beginning counts as one
#endif

#if SIM_MODE != 0

// Only the block's own arrays may be touched, each exactly.
void bounds_block_begin(BlockState* b) {
#if SIM_MODE == 1
    forbid_region(b->arena, ARENA_BYTES);
#else
    if (!b->shadow) b->shadow = new SharedShadow;
    SharedShadow& s = *b->shadow;
    std::memset(s.written.data(), 0, s.used);
    ++proxy_fences;
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

void check_bounds(const BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc) {
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

void check_initialised(const BlockState* owner, const char* p, u32 bytes, Access kind, const void* pc) {
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
        for (size_t i = at / 16; i <= (at + bytes - 1) / 16; ++i) s.fences_before[i] = proxy_fences;
        const u32 end = static_cast<u32>(at + bytes);
        if (end > s.used) s.used = end;
    }
}

// An asynchronous copy has written.
void race_written(BlockState* b, const char* p, u32 bytes) {
    SharedShadow& s = *b->shadow;
    const size_t at = static_cast<size_t>(p - b->arena);
    if (at + bytes > s.written.size()) return;
    std::memset(s.written.data() + at, 1, bytes);
    for (size_t i = at / 16; i <= (at + bytes - 1) / 16; ++i) s.fences_before[i] = 0;
    s.used = std::max(s.used, static_cast<u32>(at + bytes));
}

// Bulk copies go through another proxy than the accesses of threads: what threads wrote is certain to be seen only
// after a proxy fence. Any thread's fence counts, as only one on the way from the write to the copy is asked for.
void proxy_fence() {
    ++proxy_fences;
}

void check_fenced(const BlockState* owner, const char* p, u32 bytes, const void* pc) {
    const SharedShadow& s = *owner->shadow;
    const size_t at = static_cast<size_t>(p - owner->arena);
    if (at + bytes > s.written.size()) return;
    for (size_t i = at / 16; i <= (at + bytes - 1) / 16; ++i) {
        if (s.fences_before[i] != proxy_fences) continue;
        Report report = report_here("missing_proxy_fence",
                                    "a bulk copy reads " + array_name(owner, p) +
                                        ", to which threads wrote, with no fence.proxy.async after the writes",
                                    {nullptr, 0, pc});
        for (size_t word = i * 16; word < i * 16 + 16; word += 4)
            if (const void* write = last_write(owner, owner->arena + word)) {
                report.has_other = true;
                report.other = {nullptr, 0, write};
            }
        add_report(std::move(report));
        return;
    }
}

#endif

}  // namespace sim
