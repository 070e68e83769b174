// The checker of race mode: every access of a kernel to device or shared memory is announced here (sanitizer.cpp).
//
// Races, by happens-before: per 4 bytes a list of records of who accessed them. What is ordered:
//   - the accesses of one thread;
//   - across a barrier of the whole block: the block's epoch;
//   - across __syncwarp, for the lanes that took part: each thread knows, per lane of its warp, a clock;
//   - across a barrier of some threads: the same, per thread of the block, kept only where such barriers are used;
//   - across a barrier of the cluster: a count of its barriers; what a thread does between arriving and waiting is
//   after;
//   - by an mbarrier: what was before an arrival, for those that waited for its phase; the copies it counts are before
//   that, and before nothing else (race_copies.cpp);
//   - across blocks else: by a grid barrier, or when one block's thread fenced and then touched an atomic that a thread
//     of the other block touched later (then everything the first block did so far counts as seen, and no fence is
//     asked of the reader: generous, so that the correct kernels that wait for their last block are not accused).
// Shuffles and votes order nothing, as CUDA says. Atomics do not race with each other where PTX calls them morally
// strong: of one size, and both with a scope that holds the other thread.
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "heap.h"
#include "race.h"

#if SIM_MODE == 2

namespace sim {

namespace {

constexpr u32 MOST_RECORDS = 96;  // per 4 bytes; more readers than that are forgotten, never invented

Cell* cells = nullptr;
Pool global_pool;
u32 stamps = 0, launch_stamp = 0;
std::unordered_map<const void*, std::unordered_map<u32, u32> > synchronisers;

// The module's own data, where `__device__` variables are: races are looked for there too, bounds are not known.
const char *variables_start = nullptr, *variables_end = nullptr;
std::vector<Cell> variable_cells;

inline bool in_variables(const char* p) {
    return p >= variables_start && p < variables_end;
}

void find_variables() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void*) {
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& segment = info->dlpi_phdr[i];
                const char* start = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
                const char* mine = reinterpret_cast<const char*>(&variables_start);
                if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W) || mine < start ||
                    mine >= start + segment.p_memsz)
                    continue;
                variables_start = reinterpret_cast<const char*>(reinterpret_cast<size_t>(start) & ~size_t(7));
                variables_end = start + segment.p_memsz;
                return 1;
            }
            return 0;
        },
        nullptr);
    variable_cells.resize(static_cast<size_t>(variables_end - variables_start) / 4 + 2);
}

// Two plain writes of one value are no race; whether they are shows once the second has happened.
struct Pending {
    bool any = false;
    const char* address = nullptr;
    u32 bytes = 0;
    u8 before[16] = {};
    Report report;
} pending;

void settle_pending() {
    if (!pending.any) return;
    pending.any = false;
    if (std::memcmp(pending.address, pending.before, pending.bytes) != 0) add_report(std::move(pending.report));
}

// A thread that has come to its cluster's barrier and not yet waited there: what it does is after the barrier.
u32 ahead(const BlockState* b, u32 me) {
    if (!b->groups[static_cast<u32>(Wide::CLUSTER)]) return 0;
    return b->wide[static_cast<u32>(Wide::CLUSTER)][me >> 5].arrived >> (me & 31) & 1;
}

// Whether two accesses of which one writes are a race unless something orders them.
bool conflict(const Record& r, const RaceBlock& s, u32 bytes, int kind) {
    if ((kind & 3) == READ && (r.kind & 3) == READ) return false;
    if ((kind & 3) != ATOMIC || (r.kind & 3) != ATOMIC) return true;
    if (kind & r.kind & LOAD) return false;
    return r.size != bytes || (r.block != s.linear && ((kind | r.kind) & BLOCK));
}

bool ordered(const Record& r, const RaceBlock& s, u32 me) {
    if (r.block != s.linear) {
        auto seen = s.known.find(r.block);
        return seen != s.known.end() && seen->second > r.release;
    }
    if (r.warp == COPIER) {
        const std::vector<u32>& made = s.copies[me];
        return r.lanes < made.size() && made[r.lanes] >= r.clock;
    }
    if (r.epoch < s.epoch || r.wide < s.wide) return true;
    u32 lanes = r.lanes;
    if (r.warp == me >> 5) {
        lanes &= ~(1u << (me & 31));
        for (u32 left = lanes; left; left &= left - 1) {
            const u32 lane = static_cast<u32>(__builtin_ctz(left));
            if (s.know[me * 32 + lane] >= r.clock) lanes &= ~(1u << lane);
        }
    }
    if (lanes && !s.far.empty() && !s.far[me].empty()) {
        for (u32 left = lanes; left; left &= left - 1) {
            const u32 lane = static_cast<u32>(__builtin_ctz(left));
            if (s.far[me][r.warp * 32u + lane] >= r.clock) lanes &= ~(1u << lane);
        }
    }
    return lanes == 0;
}

// A plain read before a compare-and-swap loop is how CUDA's guide writes such loops: a read that conflicts with an
// atomic is told only if the reader makes no compare-and-swap at the same place afterwards. The same line need not
// reach it in every thread: such loops end early where there is nothing to change.
struct Doubt {
    Report report;
    const void* read_at;
};
std::map<std::tuple<u32, u32, size_t>, Doubt> reads_in_doubt;
std::set<const void*> loop_reads;

void tell(Doubt& doubt) {
    if (!loop_reads.count(doubt.read_at)) add_report(std::move(doubt.report));
}

void tell_doubtful_reads(u32 linear) {
    auto at = reads_in_doubt.lower_bound({linear, 0, 0});
    while (at != reads_in_doubt.end() && std::get<0>(at->first) == linear) {
        tell(at->second);
        at = reads_in_doubt.erase(at);
    }
}

void report_race(const Record& r, const BlockState* b, const BlockState* owner, u32 me, const char* address, u32 bytes,
                 int kind, const void* pc, size_t word_at, bool copying) {
    const u32 mine = static_cast<u32>(b->linear);
    u32 lanes = r.lanes;
    if (r.block == mine && r.warp == me >> 5) lanes &= ~(1u << (me & 31));
    const bool copied = r.warp == COPIER;
    const u32 other = copied ? r.epoch : r.warp * 32u + static_cast<u32>(lanes ? __builtin_ctz(lanes) : 0);
    const std::string where = owner ? array_name(owner, address) : "device memory";
    std::string why;
    if ((kind & 3) == ATOMIC && (r.kind & 3) == ATOMIC)
        why = r.size != bytes ? " (atomics of different sizes)" : " (an atomic with block scope, from another block)";
    Report report =
        report_here("race",
                    std::string(access_word(kind)) + (copying ? " by an asynchronous copy" : "") + " of " + where +
                        " that is not ordered with " + (copied ? "an asynchronous copy's " : "another thread's ") +
                        access_word(r.kind) + why,
                    {nullptr, 0, pc});
    report.has_other = true;
    report.other = {nullptr, 0, r.pc};
    report.other_block = block_coordinates(b->launch, r.block);
    report.other_thread = thread_coordinates(b, other);
    if (kind == READ && (r.kind & 3) == ATOMIC) {
        reads_in_doubt.emplace(std::make_tuple(mine, me, word_at), Doubt{std::move(report), pc});
        return;
    }
    if ((kind & 3) == ATOMIC && r.kind == READ) {
        reads_in_doubt.emplace(std::make_tuple(r.block, other, word_at), Doubt{std::move(report), r.pc});
        return;
    }
    if (kind == WRITE && r.kind == WRITE && bytes <= 16 && !copying && !copied) {
        settle_pending();
        pending.any = true;
        pending.address = address;
        pending.bytes = bytes;
        std::memcpy(pending.before, address, bytes);
        pending.report = std::move(report);
        return;
    }
    add_report(std::move(report));
}

// `copy`: the access is that copy's, which the current thread issues, and not the thread's own.
void check_race(BlockState* b, const BlockState* owner, const char* p, u32 bytes, int kind, const void* pc,
                const Copy* copy = nullptr) {
    RaceBlock& s = *b->race;
    const u32 me = b->current, stamp = owner ? owner->race->stamp : launch_stamp, after = ahead(b, me);
    Pool& pool = owner ? owner->race->pool : global_pool;
    const bool variable = in_variables(p);
    const size_t first = static_cast<size_t>(p - (variable ? variables_start : heap_base)), last = first + bytes;
    bool reported = false;
    for (size_t word_at = first / 4; word_at * 4 < last; ++word_at) {
        u8 mask = 0;
        for (u32 i = 0; i < 4; ++i)
            if (word_at * 4 + i >= first && word_at * 4 + i < last) mask |= static_cast<u8>(1u << i);
        if ((kind & CAS) == CAS && !reads_in_doubt.empty())
            reads_in_doubt.erase({s.linear, me, word_at + (variable ? HEAP_BYTES : 0)});
        Cell& cell = variable ? variable_cells[word_at] : cells[word_at];
        if (cell.stamp != stamp) cell.stamp = stamp, cell.head = 0;
        u32* link = &cell.head;
        u32 count = 0, same = 0;
        while (*link) {
            const u32 index = *link;
            Record& r = pool.records[index];
            ++count;
            if ((kind & CAS) == CAS && r.kind == READ && r.block == s.linear && r.warp == me >> 5 &&
                (r.lanes >> (me & 31) & 1)) {
                // This thread's own read led to this compare-and-swap.
                loop_reads.insert(r.pc);
                r.lanes &= ~(1u << (me & 31));
                if (!r.lanes) {
                    *link = r.next;
                    pool.give(index);
                    continue;
                }
            }
            if (r.bytes & mask) {
                const bool own = r.block == s.linear && r.warp == me >> 5 && r.lanes == 1u << (me & 31);
                const bool before = own || ordered(r, s, me);
                if (!before && !reported && conflict(r, s, bytes, kind)) {
                    reported = true;
                    report_race(r, b, owner, me, p, bytes, kind, pc, word_at + (variable ? HEAP_BYTES : 0),
                                copy != nullptr);
                }
                // What is before this access, and covered by it, need not be kept: whoever is after this is after that.
                if (before && (r.bytes & ~mask) == 0 && (kind == WRITE || kind == r.kind)) {
                    *link = r.next;
                    pool.give(index);
                    continue;
                }
            }
            if (!copy && r.block == s.linear && r.warp == me >> 5 && r.epoch == s.epoch && r.clock == s.clock[me] &&
                r.wide == s.wide + after && r.kind == kind && r.bytes == mask && r.size == bytes && r.pc == pc)
                same = index;
            link = &pool.records[index].next;
        }
        if (same) {
            pool.records[same].lanes |= 1u << (me & 31);
        } else if (count < MOST_RECORDS) {
            const u32 index = pool.take();
            Record& r = pool.records[index];
            r = Record{s.linear,
                       s.epoch,
                       1u << (me & 31),
                       s.clock[me],
                       s.wide + after,
                       s.release + after,
                       0,
                       pc,
                       static_cast<u8>(me >> 5),
                       static_cast<u8>(kind),
                       mask,
                       static_cast<u8>(std::min(bytes, 255u))};
            if (copy) r.warp = COPIER, r.epoch = me, r.lanes = copy->copier, r.clock = copy->clock;
            r.next = cell.head;
            cell.head = index;
        }
    }
}

// An atomic sees what was released at its address, before its own access is looked at ...
void acquire(RaceBlock& s, const void* address) {
    auto found = synchronisers.find(address);
    if (found == synchronisers.end()) return;
    for (const auto& [other, release] : found->second) {
        u32& mine = s.known[other];
        if (release > mine) mine = release;
    }
}

// ... and releases, after a fence, all that its block did so far, itself included.
void release(RaceBlock& s, const void* address, u32 me) {
    if (!s.fenced[me]) return;
    auto& held = synchronisers[address];
    held[s.linear] = ++s.release;
    for (const auto& [other, seen] : s.known) {
        u32& there = held[other];
        if (seen > there) there = seen;
    }
}

thread_local bool busy = false;

}  // namespace

void announce(const void* address, u32 bytes, Access kind, const void* pc) {
    const char* p = static_cast<const char*>(address);
    if (!block || busy) return;
    const bool variable = in_variables(p);
    if (!variable && !in_heap(p)) return;
    busy = true;
    settle_pending();
    BlockState* b = here();
    BlockState* owner = variable ? nullptr : owner_of_shared(b, p);
    if (!variable) check_bounds(owner, p, bytes, kind, pc);
    if (owner) check_initialised(owner, p, bytes, kind, pc);
    // Between the threads of one block, atomics in its own memory are not how they wait for each other.
    const bool synchronises = (kind & 3) == ATOMIC && (!owner || b->launch->cluster > 1);
    if (synchronises) acquire(*b->race, address);
    check_race(b, owner, p, bytes, kind, pc);
    if (owner && owner != b)
        owner->race->visits[b->race->linear] = {b->race->release + ahead(b, b->current), b->current, pc};
    if (synchronises) release(*b->race, address, b->current);
    busy = false;
}

// A volatile access is how threads of different blocks talk. In one block's shared memory it is a plain one: to PTX it
// is no data race, but nothing orders it, and code that relies on it dates from when a warp ran in step.
void announce_volatile(const void* address, u32 bytes, bool write, const void* pc) {
    if (!block) return;
    BlockState* b = here();
    const bool plain = in_heap(address) && owner_of_shared(b, address) && b->launch->cluster == 1;
    const int strong = write ? ATOMIC : ATOMIC | LOAD;
    // Others get their turn first: what the access sees must be what was seen here.
    breathe();
    announce(address, bytes, plain ? (write ? WRITE : READ) : static_cast<Access>(strong), pc);
}

// An access by a copy that the current thread issues. It comes after what that thread did so far.
void race_copy(BlockState* b, u32 copier, u32 clock, const void* address, u32 bytes, Access kind, const void* pc) {
    const char* p = static_cast<const char*>(address);
    const bool variable = in_variables(p);
    if (!bytes || (!variable && !in_heap(p))) return;
    settle_pending();
    const BlockState* owner = variable ? nullptr : owner_of_shared(b, p);
    if (!variable) check_bounds(owner, p, bytes, kind, pc);
    if (owner && kind == READ) {
        check_initialised(owner, p, bytes, kind, pc);
        check_fenced(owner, p, bytes, pc);
    }
    const Copy copy{copier, clock};
    check_race(b, owner, p, bytes, kind, pc, &copy);
}

// Where a thread's write to these 4 bytes was; null for none that is remembered.
const void* last_write(const BlockState* owner, const char* p) {
    const Cell& cell = cells[static_cast<size_t>(p - heap_base) / 4];
    if (cell.stamp != owner->race->stamp) return nullptr;
    for (u32 at = cell.head; at; at = owner->race->pool.records[at].next) {
        const Record& r = owner->race->pool.records[at];
        if ((r.kind & 3) != READ && r.warp != COPIER) return r.pc;
    }
    return nullptr;
}

void fence_device() {
    if (block) here()->race->fenced[block->current] = 1;
}

void race_launch_begin() {
    if (!heap_base) device_free(device_allocate(1));
    if (!cells) {
        const size_t room = HEAP_BYTES / 4 * sizeof(Cell);
        void* p = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) std::abort();
        cells = static_cast<Cell*>(p);
        find_variables();
    }
    settle_pending();
    busy = false;
    launch_stamp = ++stamps;
    global_pool.clear();
    synchronisers.clear();
}

void race_block_begin(BlockState* b) {
    settle_pending();
    busy = false;
    if (!b->race) b->race = new RaceBlock;
    RaceBlock& s = *b->race;
    const u32 n = b->launch->threads, warps = (n + 31) / 32 * 32;
    s.stamp = ++stamps;
    s.linear = static_cast<u32>(b->linear);
    s.epoch = 1;
    s.release = s.wide = 0;
    s.clock.assign(n, 1);
    s.know.assign(warps * 32, 0);
    s.far.clear();
    s.fenced.assign(n, 0);
    s.known.clear();
    s.pool.clear();
    s.copy_clock.clear();
    s.copies.assign(n, {});
    s.visits.clear();
}

// A block of a cluster has ended: whoever reached into its shared memory must have done so before that for certain.
void race_block_end(BlockState* b) {
    for (const auto& [other, visit] : b->race->visits) {
        const auto seen = b->race->known.find(other);
        if (seen != b->race->known.end() && seen->second > visit.release) continue;
        Report report;
        report.kind = "out_of_bounds";
        report.kernel = b->launch->kernel.name;
        report.launched = {b->launch->kernel.file, b->launch->kernel.line};
        report.message =
            "an access to the shared memory of a block of the cluster that may have ended: no barrier of "
            "the cluster comes between the access and the block's end";
        report.place = {nullptr, 0, visit.pc};
        report.has_thread = true;
        report.block = block_coordinates(b->launch, other);
        report.thread = thread_coordinates(b, visit.thread);
        add_report(std::move(report));
    }
}

void race_join_warp(BlockState* b, u32 warp, u32 lanes) {
    settle_pending();
    RaceBlock& s = *b->race;
    u32 joined[32] = {};
    for (u32 left = lanes; left; left &= left - 1) {
        const u32 id = warp * 32 + static_cast<u32>(__builtin_ctz(left));
        s.know[id * 32 + (id & 31)] = s.clock[id];
        for (u32 l = 0; l < 32; ++l) joined[l] = std::max(joined[l], s.know[id * 32 + l]);
    }
    for (u32 left = lanes; left; left &= left - 1) {
        const u32 id = warp * 32 + static_cast<u32>(__builtin_ctz(left));
        std::memcpy(&s.know[id * 32], joined, sizeof joined);
        ++s.clock[id];
    }
    if (s.far.empty() && s.copy_clock.empty()) return;
    u32 members[32] = {};
    members[warp] = lanes;
    if (s.far.empty())
        join_copies(s, members);
    else
        race_join_some(b, members);
}

void race_join_block(BlockState* b) {
    settle_pending();
    RaceBlock& s = *b->race;
    tell_doubtful_reads(s.linear);
    ++s.epoch;
    std::fill(s.clock.begin(), s.clock.end(), 1);
    std::fill(s.know.begin(), s.know.end(), 0);
    s.far.clear();
    // The clocks begin anew: what arrivals told of is before the barrier too.
    for (MBarrier& bar : b->mbarriers) bar.joining.threads.clear(), bar.completed.threads.clear();
    join_copies_of_all(b);
}

void race_join_some(BlockState* b, const u32 (&members)[32]) {
    settle_pending();
    RaceBlock& s = *b->race;
    const size_t n = s.clock.size(), room = (n + 31) / 32 * 32;
    if (s.far.empty()) s.far.resize(n);
    std::vector<u32> joined(room, 0);
    const auto each = [&](auto&& what) {
        for (u32 w = 0; w < 32; ++w)
            for (u32 left = members[w]; left; left &= left - 1) what(w * 32 + static_cast<u32>(__builtin_ctz(left)));
    };
    each([&](u32 id) {
        joined[id] = std::max(joined[id], s.clock[id]);
        for (u32 l = 0; l < 32; ++l) {
            u32& there = joined[(id & ~31u) + l];
            there = std::max(there, s.know[id * 32u + l]);
        }
        if (!s.far[id].empty())
            for (size_t i = 0; i < room; ++i) joined[i] = std::max(joined[i], s.far[id][i]);
    });
    each([&](u32 id) {
        s.far[id] = joined;
        for (u32 l = 0; l < 32; ++l) s.know[id * 32u + l] = std::max(s.know[id * 32u + l], joined[(id & ~31u) + l]);
        ++s.clock[id];
    });
    join_copies(s, members);
}

void race_join_wide(const Group& group, Wide which) {
    settle_pending();
    if (which == Wide::GRID) {
        // Everything before is ordered with everything after: nothing of it need be kept.
        launch_stamp = ++stamps;
        global_pool.clear();
    }
    for (BlockState* b : group.blocks) {
        RaceBlock& s = *b->race;
        tell_doubtful_reads(s.linear);
        ++s.wide;
        ++s.release;
        join_copies_of_all(b);
        if (which == Wide::CLUSTER) continue;
        s.stamp = ++stamps;
        s.pool.clear();
    }
    if (which == Wide::GRID) return;
    std::unordered_map<u32, u32> known;
    for (BlockState* b : group.blocks) {
        known[b->race->linear] = b->race->release;
        for (const auto& [other, seen] : b->race->known) known[other] = std::max(known[other], seen);
    }
    for (BlockState* b : group.blocks) b->race->known = known;
}

void race_launch_end() {
    settle_pending();
    for (auto& [key, doubt] : reads_in_doubt) tell(doubt);
    reads_in_doubt.clear();
}

}  // namespace sim

#endif
