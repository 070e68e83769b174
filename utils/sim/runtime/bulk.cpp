// Bulk copies: into shared memory, counted by an mbarrier; out of it, in groups that their thread waits for.
//
// Each is checked where it is issued and made when somebody waits for it. A copy out of shared memory is made in two
// steps, as it may be waited for in two: what it reads is kept until it is written.
#include <sim/mbarrier.h>

#include <cstring>

#include "state.h"

#if SIM_MODE == 1
#include <sanitizer/asan_interface.h>
#endif

namespace sim {

namespace {

#define CALLER __builtin_return_address(0)

void check_copy(const void* target, const void* source, u32 bytes, const char* file, int line) {
    if (bytes % 16)
        fatal("misaligned",
              ("a bulk copy of " + std::to_string(bytes) + " bytes: the size must be a multiple of 16").c_str(), file,
              line);
    check_aligned(target, 16, file, line);
    check_aligned(source, 16, file, line);
}

// AddressSanitizer is asked where the copy is issued; race mode looks by itself.
bool inside(const void* address, u32 bytes, const char* word, const char* file, int line) {
#if SIM_MODE == 1
    char* start = static_cast<char*>(const_cast<void*>(address));
    const char* first = bytes ? static_cast<const char*>(__asan_region_is_poisoned(start, bytes)) : nullptr;
    if (!first) return true;
    add_report(report_here("out_of_bounds",
                           std::string("a bulk copy that ") + word + " " + std::to_string(bytes) +
                               " bytes leaves the array after " + std::to_string(first - start) + " of them",
                           {file, line}));
    return false;
#else
    (void)address, (void)bytes, (void)word, (void)file, (void)line;
    return true;
#endif
}

void report_unfinished(BlockState* b, u32 thread, const char* what, const char* file, int line) {
    b->current = thread;
    add_report(report_here("unfinished_copy",
                           std::string("the block ends while this bulk copy may still ") + what +
                               " its shared memory: no thread has waited for it",
                           {file, line}));
}

// memmove, and out of line, lest it become a memcpy: that would be announced as an access of the thread that waits
// (sanitizer.cpp).
__attribute__((noinline)) void move(void* target, const void* source, size_t bytes) {
    std::memmove(target, source, bytes);
}

void read_now(BlockState* b, u32 thread, BulkQueue& queue, BulkStore& copy) {
    race_copy_known(b, thread, queue.reader, copy.clock);
    copy.read = true;
    if (copy.source) {
        copy.data.resize(copy.bytes);
        move(copy.data.data(), copy.source, copy.bytes);
    }
    copy.source = nullptr;
}

void write_now(const BulkStore& copy) {
    if (!copy.data.empty()) move(copy.target, copy.data.data(), copy.data.size());
}

}  // namespace

void make_copy(BlockState* b, const TrackedCopy& copy) {
    if (!copy.bytes) return;
    if (copy.source) {
        move(copy.target, copy.source, copy.source_bytes);
        for (u32 i = copy.source_bytes; i < copy.bytes; ++i) const_cast<volatile char*>(copy.target)[i] = 0;
    }
    race_written(b, copy.target, copy.bytes);
}

// A thread that waits for its cp.async copies waits for those too that an mbarrier tracks.
void make_tracked_copies_of(BlockState* b, u32 thread) {
    for (MBarrier& bar : b->mbarriers)
        for (TrackedCopy& copy : bar.copies) {
            if (copy.thread != thread || copy.expected || !copy.bytes) continue;
            make_copy(b, copy);
            race_copy_known(b, thread, bar.copier, copy.clock);
            copy.bytes = 0;
        }
}

void bulk_load_deferred(void* target, const void* source, u32 bytes, void* mbarrier, const char* file, int line) {
    BlockState* b = here();
    check_copy(target, source, bytes, file, line);
    const BlockState* owner = owner_of_shared(b, target);
    if (!owner) fatal("illegal_access", "the target of a bulk copy is not in shared memory", file, line);
    if (owner != b) unsupported("a bulk copy into another block's shared memory", file, line);
    MBarrier& bar = find_mbarrier(mbarrier, ATOMIC, CALLER, file, line);
    const u32 clock = race_next_copy(b, bar.copier);
    race_copy(b, bar.copier, clock, source, bytes, READ, CALLER);
    race_copy(b, bar.copier, clock, target, bytes, WRITE, CALLER);
    race_publish(b, b->current, bar.joining);
    const bool whole = inside(source, bytes, "reads", file, line) & inside(target, bytes, "writes", file, line);
    bar.copies.push_back({static_cast<char*>(target), whole ? static_cast<const char*>(source) : nullptr, bytes, bytes,
                          bytes, false, b->current, clock, file, line});
    if (bar.waiters) make_copies(b, bar);
}

void bulk_store_deferred(void* target, const void* source, u32 bytes, const char* file, int line) {
    BlockState* b = here();
    check_copy(target, source, bytes, file, line);
    if (owner_of_shared(b, source) != b)
        fatal("illegal_access", "the source of a bulk copy is not in the block's shared memory", file, line);
    if (owner_of_shared(b, target))
        fatal("illegal_access", "the target of a bulk copy is not in device memory", file, line);
    if (b->bulk.size() != b->count) b->bulk.resize(b->count);
    BulkQueue& queue = b->bulk[b->current];
    if (queue.copies.empty() && !queue.writer) {
        queue.reader = race_copier(b);
        queue.writer = race_copier(b);
    }
    const u32 clock = race_next_copy(b, queue.reader);
    race_next_copy(b, queue.writer);
    race_copy(b, queue.reader, clock, source, bytes, READ, CALLER);
    race_copy(b, queue.writer, clock, target, bytes, WRITE, CALLER);
    const bool whole = inside(source, bytes, "reads", file, line) & inside(target, bytes, "writes", file, line);
    queue.copies.push_back({static_cast<char*>(target),
                            whole ? static_cast<const char*>(source) : nullptr,
                            bytes,
                            queue.group,
                            false,
                            {},
                            clock,
                            file,
                            line});
}

void bulk_prefetch(const void* source, u32 bytes, const char* file, int line) {
    check_copy(nullptr, source, bytes, file, line);
}

void bulk_commit() {
    BlockState* b = here();
    if (b->bulk.size() == b->count) ++b->bulk[b->current].group;
}

void bulk_wait(u32 allowed, bool only_read) {
    BlockState* b = here();
    if (b->bulk.size() != b->count) return;
    const u32 me = b->current;
    BulkQueue& queue = b->bulk[me];
    for (BulkStore& copy : queue.copies) {
        if (copy.group + allowed >= queue.group) break;
        if (!copy.read) read_now(b, me, queue, copy);
    }
    while (!only_read && !queue.copies.empty() && queue.copies.front().group + allowed < queue.group) {
        const BulkStore& copy = queue.copies.front();
        race_copy_known(b, me, queue.writer, copy.clock);
        write_now(copy);
        queue.copies.pop_front();
    }
}

// What nobody waited for. Writes to device memory are complete at the kernel's end in any case.
void finish_copies(BlockState* b) {
    for (const MBarrier& bar : b->mbarriers)
        for (const TrackedCopy& copy : bar.copies)
            if (copy.expected) report_unfinished(b, copy.thread, "write", copy.file, copy.line);
    for (u32 id = 0; id < b->bulk.size(); ++id)
        for (BulkStore& copy : b->bulk[id].copies) {
            if (!copy.read) {
                report_unfinished(b, id, "read", copy.file, copy.line);
                read_now(b, id, b->bulk[id], copy);
            }
            write_now(copy);
        }
}

}  // namespace sim
