// mbarriers: arrivals, bytes expected of copies, and the threads that wait for a phase to be complete.
//
// What a kernel sees of one is a word in shared memory, which holds a mark and a number; all else is kept here. A word
// without its mark is an mbarrier that was never initialised, or that something else has overwritten.
#include <sim/mbarrier.h>

#include <algorithm>

#include "state.h"

namespace sim {

namespace {

constexpr u64 MARK = 0x6d626172ull << 32, INVALIDATED = 0x64656164ull << 32;
constexpr u32 MOST = (1u << 20) - 1;  // of arrivals, and of bytes, by the PTX ISA

#define CALLER __builtin_return_address(0)

u64 word_at(const void* at) {
    u64 word;
    __builtin_memcpy(&word, at, sizeof word);
    return word;
}
void set_word(void* at, u64 word) {
    __builtin_memcpy(at, &word, sizeof word);
}

void check_place(BlockState* b, void* at, Access kind, const void* pc, const char* file, int line) {
    check_aligned(at, 8, file, line);
    const BlockState* owner = owner_of_shared(b, at);
    if (!owner) fatal("illegal_access", "an mbarrier that is not in shared memory", file, line);
    if (owner != b) unsupported("an mbarrier of another block", file, line);
#if SIM_MODE == 2
    announce(at, 8, kind, pc);
#else
    (void)kind, (void)pc;
#endif
}

void invalid(const std::string& message, const char* file, int line) {
    fatal("invalid_mbarrier", message.c_str(), file, line);
}

// A phase is complete when all have arrived and all bytes have come. Those that wait for it are told at once: by the
// time they go on, the next phase may be complete too.
void settle(BlockState* b, MBarrier& bar) {
    b->polls = 0;
    if (bar.pending || bar.bytes) return;
    ++bar.phase;
    bar.pending = bar.expected;
    bar.completed = bar.joining;
    if (!bar.waiters) return;
    for (u32 w = 0; w < warp_count(b); ++w) {
        const u32 lanes = bar.waiting[w];
        if (!lanes) continue;
        for (u32 left = lanes; left; left &= left - 1) {
            const u32 id = w * 32 + static_cast<u32>(__builtin_ctz(left));
            b->threads[id].wait = Wait::NONE;
            if (!(b->threads[id].mask & MBARRIER_RELAXED)) race_learn(b, id, bar.completed);
        }
        bar.waiting[w] = 0;
        b->warps[w].later &= ~lanes;
        make_ready(b, w, lanes);
    }
    bar.waiters = 0;
}

void expect(MBarrier& bar, u32 bytes, const char* file, int line) {
    bar.bytes += bytes;
    if (bar.bytes > MOST)
        invalid(std::to_string(bar.bytes) + " bytes are expected at an mbarrier, which counts up to " +
                    std::to_string(MOST),
                file, line);
}

void arrive(BlockState* b, MBarrier& bar, u32 count, const char* file, int line) {
    if (!count || count > bar.pending)
        invalid(std::to_string(count) + " arrival" + (count == 1 ? "" : "s") +
                    " at an mbarrier whose phase waits for " + std::to_string(bar.pending) + " of " +
                    std::to_string(bar.expected) +
                    (bar.bytes ? ", and for " + std::to_string(bar.bytes) + " bytes" : std::string()),
                file, line);
    bar.pending -= count;
    settle(b, bar);
}

bool wait_for_end(BlockState* b, MBarrier& bar, u32 phase, bool acquire, const char* file, int line) {
    const u32 id = b->current, w = id >> 5, bit = 1u << (id & 31);
    if (bar.phase == phase) make_copies(b, bar);
    if (bar.phase != phase) {
        if (acquire) race_learn(b, id, bar.completed);
        return true;
    }
    if (!b->waited) first_wait(b);
    bar.waiting[w] |= bit;
    ++bar.waiters;
    b->warps[w].later |= bit;
    b->later_warps |= 1u << w;
    const u32 number = static_cast<u32>(word_at(bar.at));
    wait_here(b, Wait::MBARRIER, acquire ? number : number | MBARRIER_RELAXED, file, line);
    if (b->threads[id].wait == Wait::NONE) return true;
    b->threads[id].yields = 0;
    bar.waiting[w] &= ~bit;
    --bar.waiters;
    return false;
}

}  // namespace

MBarrier& find_mbarrier(void* at, Access kind, const void* pc, const char* file, int line) {
    BlockState* b = here();
    check_place(b, at, kind, pc, file, line);
    const u64 word = word_at(at), number = word & MBARRIER_NUMBER;
    if ((word ^ MARK) != number || number >= b->mbarriers.size() || b->mbarriers[number].at != at)
        invalid("the mbarrier is not initialised, or something was written over it", file, line);
    return b->mbarriers[number];
}

// The copies that the phase waits for; those of the next one stay undone.
void make_copies(BlockState* b, MBarrier& bar) {
    for (const u32 phase = bar.phase; bar.phase == phase && !bar.copies.empty();) {
        const TrackedCopy copy = bar.copies.front();
        bar.copies.pop_front();
        make_copy(b, copy);
        race_copy_joins(bar.joining, bar.copier, copy.clock);
        bar.bytes -= copy.expected;
        if (copy.arrives)
            arrive(b, bar, 1, copy.file, copy.line);
        else
            settle(b, bar);
    }
}

void mbarrier_init(void* at, u32 count, const char* file, int line) {
    BlockState* b = here();
    check_place(b, at, WRITE, CALLER, file, line);
    if (!count || count > MOST)
        invalid("an mbarrier initialised for " + std::to_string(count) + " arrivals; 1 to " + std::to_string(MOST) +
                    " are possible",
                file, line);
    const u64 number = word_at(at) & MBARRIER_NUMBER;
    const bool again = number < b->mbarriers.size() && b->mbarriers[number].at == at &&
                       b->mbarriers[number].copies.empty() && !b->mbarriers[number].waiters;
    set_word(at, MARK | (again ? number : b->mbarriers.size()));
    MBarrier& bar = again ? b->mbarriers[number] : b->mbarriers.emplace_back();
    bar.bytes = bar.phase = 0;
    bar.at = static_cast<char*>(at);
    bar.expected = bar.pending = count;
    bar.file = file;
    bar.line = line;
    bar.thread = b->current;
    if (!again) bar.copier = race_copier(b);
}

void mbarrier_invalidate(void* at, const char* file, int line) {
    find_mbarrier(at, WRITE, CALLER, file, line);
    set_word(at, INVALIDATED | (word_at(at) & MBARRIER_NUMBER));
}

void mbarrier_expect(void* at, u32 bytes, const char* file, int line) {
    MBarrier& bar = find_mbarrier(at, ATOMIC, CALLER, file, line);
    expect(bar, bytes, file, line);
    settle(here(), bar);
    if (bar.waiters) make_copies(here(), bar);
}

void mbarrier_complete(void* at, u32 bytes, const char* file, int line) {
    MBarrier& bar = find_mbarrier(at, ATOMIC, CALLER, file, line);
    bar.bytes -= bytes;
    settle(here(), bar);
}

u64 mbarrier_arrive(void* at, u32 count, u32 bytes, bool drop, bool release, const char* file, int line) {
    BlockState* b = here();
    MBarrier& bar = find_mbarrier(at, ATOMIC, CALLER, file, line);
    const u64 state = u64(bar.phase) << 32 | bar.pending;
    expect(bar, bytes, file, line);
    if (release) race_publish(b, b->current, bar.joining);
    if (drop) bar.expected -= std::min(count, bar.expected);
    arrive(b, bar, count, file, line);
    if (bar.waiters) make_copies(b, bar);
    return state;
}

void mbarrier_arrive_after_copies(void* at, bool counted, const char* file, int line) {
    BlockState* b = here();
    MBarrier& bar = find_mbarrier(at, ATOMIC, CALLER, file, line);
    const u32 me = b->current;
    if (!counted) ++bar.pending;
    const u32 clock = race_next_copy(b, bar.copier);
    if (b->async.size() == b->count) {
        for (const AsyncCopy& each : b->async[me].copies) {
            race_copy(b, bar.copier, clock, each.source, each.source_bytes, READ, each.pc);
            race_copy(b, bar.copier, clock, each.target, each.bytes, WRITE, each.pc);
            bar.copies.push_back({static_cast<char*>(each.target), static_cast<const char*>(each.source), each.bytes,
                                  each.source_bytes, 0, false, me, clock, file, line});
        }
        b->async[me].copies.clear();
    }
    bar.copies.push_back({nullptr, nullptr, 0, 0, 0, true, me, clock, file, line});
    race_publish(b, me, bar.joining);
    if (bar.waiters) make_copies(b, bar);
}

bool mbarrier_wait(void* at, u64 state, bool acquire, const char* file, int line) {
    MBarrier& bar = find_mbarrier(at, Access(ATOMIC | LOAD), CALLER, file, line);
    return wait_for_end(here(), bar, static_cast<u32>(state >> 32), acquire, file, line);
}

bool mbarrier_wait_parity(void* at, u32 parity, bool acquire, const char* file, int line) {
    MBarrier& bar = find_mbarrier(at, Access(ATOMIC | LOAD), CALLER, file, line);
    const u32 phase = (bar.phase & 1) == (parity & 1) ? bar.phase : bar.phase - 1;
    return wait_for_end(here(), bar, phase, acquire, file, line);
}

bool only_mbarrier_waiters(const BlockState* b) {
    for (u32 warps = b->later_warps; warps; warps &= warps - 1) {
        const u32 w = static_cast<u32>(__builtin_ctz(warps));
        for (u32 left = b->warps[w].later; left; left &= left - 1)
            if (b->threads[w * 32 + static_cast<u32>(__builtin_ctz(left))].wait != Wait::MBARRIER) return false;
    }
    return true;
}

}  // namespace sim
