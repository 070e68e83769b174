// Simulated device memory. In plain mode it is the C heap, aligned as a device aligns. In the checking modes it is one
// reserved region, so that whose memory an address is, and its shadow, are found by arithmetic: torch's CPU tensors are
// allocated here too (torch.cpp), each with bounds exact to the byte and a gap behind it.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "heap.h"
#include "state.h"

#if SIM_MODE == 1
#include <sanitizer/asan_interface.h>
#endif

namespace sim {

#if SIM_MODE == 0

void* device_allocate(size_t bytes) {
    void* p = nullptr;
    return posix_memalign(&p, 512, bytes ? bytes : 1) ? nullptr : p;
}
void device_free(void* pointer) {
    std::free(pointer);
}

char* shared_arena(size_t bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 1024, bytes)) std::abort();
    return static_cast<char*>(p);
}

bool find_allocation(const void*, const char**, size_t*, bool*) {
    return false;
}

#else

char* heap_base = nullptr;
u8* heap_valid = nullptr;

namespace {

constexpr size_t GAP = 512;
constexpr size_t QUARANTINE = 64;  // frees before memory is used again

struct Allocation {
    size_t bytes, room;
    bool freed;
};

std::mutex lock;
size_t used = 0;
std::map<const char*, Allocation> allocations;
std::multimap<size_t, char*> reusable;
std::deque<char*> resting;

void* reserve(size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        std::fprintf(stderr, "simulator: cannot reserve %zu bytes of address space for the checker\n", bytes);
        std::abort();
    }
    return p;
}

void open_heap() {
    if (heap_base) return;
    heap_base = static_cast<char*>(reserve(HEAP_BYTES));
#if SIM_MODE == 2
    heap_valid = static_cast<u8*>(reserve(HEAP_BYTES / 8));
#endif
}

void allow(char* p, size_t bytes) {
#if SIM_MODE == 1
    __asan_unpoison_memory_region(p, bytes);
#else
    const size_t at = static_cast<size_t>(p - heap_base) / 8;
    std::memset(heap_valid + at, 8, bytes / 8);
    if (bytes % 8) heap_valid[at + bytes / 8] = static_cast<u8>(bytes % 8);
#endif
}

void forbid(char* p, size_t bytes) {
#if SIM_MODE == 1
    __asan_poison_memory_region(p, bytes);
#else
    std::memset(heap_valid + static_cast<size_t>(p - heap_base) / 8, 0, (bytes + 7) / 8);
#endif
}

char* carve(size_t bytes) {
    open_heap();
    const size_t room = (bytes + GAP + 511) / 512 * 512;
    auto found = reusable.lower_bound(room);
    char* p;
    size_t have = room;
    if (found != reusable.end() && found->first <= room * 2) {
        p = found->second;
        have = found->first;
        reusable.erase(found);
    } else {
        if (used + room + GAP > HEAP_BYTES) return nullptr;
        if (used == 0) {
            used = GAP;
            forbid(heap_base, GAP);
        }
        p = heap_base + used;
        used += room;
    }
    forbid(p, have);
    allow(p, bytes);
    allocations[p] = {bytes, have, false};
    return p;
}

}  // namespace

void* device_allocate(size_t bytes) {
    std::lock_guard<std::mutex> hold(lock);
    return carve(bytes);
}

void device_free(void* pointer) {
    if (!pointer) return;
    std::lock_guard<std::mutex> hold(lock);
    auto found = allocations.find(static_cast<char*>(pointer));
    if (found == allocations.end()) {
        std::free(pointer);
        return;
    }
    found->second.freed = true;
    forbid(static_cast<char*>(pointer), found->second.bytes);
    resting.push_back(static_cast<char*>(pointer));
    if (resting.size() <= QUARANTINE) return;
    char* oldest = resting.front();
    resting.pop_front();
    auto old = allocations.find(oldest);
    reusable.emplace(old->second.room, oldest);
    allocations.erase(old);
}

char* shared_arena(size_t bytes) {
    std::lock_guard<std::mutex> hold(lock);
    char* p = carve(bytes);
    if (!p) std::abort();
    allocations.erase(p);  // its parts are arrays of the block, told apart by the checker itself
#if SIM_MODE == 2
    forbid(p, bytes);
#endif
    return p;
}

bool find_allocation(const void* address, const char** start, size_t* bytes, bool* freed) {
    std::lock_guard<std::mutex> hold(lock);
    auto after = allocations.upper_bound(static_cast<const char*>(address));
    if (after == allocations.begin()) return false;
    auto before = std::prev(after);
    if (static_cast<const char*>(address) >= before->first + before->second.room) {
        // Nearer to the next one?
        if (after == allocations.end()) return false;
        before = after;
    } else if (after != allocations.end() && after->first - static_cast<const char*>(address) <= 64 &&
               static_cast<const char*>(address) > before->first + before->second.bytes + 64) {
        before = after;
    }
    *start = before->first;
    *bytes = before->second.bytes;
    *freed = before->second.freed;
    return true;
}

void allow_region(char* p, size_t bytes) {
    allow(p, bytes);
}
void forbid_region(char* p, size_t bytes) {
    forbid(p, bytes);
}

#endif

}  // namespace sim
