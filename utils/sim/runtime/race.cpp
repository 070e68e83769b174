// The checker of race mode: every access of a kernel to device or shared memory is announced here (sanitizer.cpp).
//
// Bounds: a byte of shadow per 8 bytes of the heap (heap.cpp). Initialisation: a byte per byte of shared memory.
// Races, by happens-before: per 4 bytes a list of records of who accessed them. What is ordered:
//   - the accesses of one thread;
//   - across a barrier of the whole block: the block's epoch;
//   - across __syncwarp, for the lanes that took part: each thread knows, per lane of its warp, a clock;
//   - across a barrier of some threads: the same, per thread of the block, kept only where such barriers are used;
//   - across blocks: by a grid barrier, or when one block's thread fenced and then touched an atomic that a thread of
//   the
//     other block touched later (then everything the first block did so far counts as seen: generous, so that the
//     correct kernels that wait for their last block are not accused).
// Shuffles and votes order nothing, as CUDA says. Atomics do not race with atomics.
#include <link.h>
#include <cstring>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <sys/mman.h>

#include "heap.h"
#include "state.h"

namespace sim {

#if SIM_MODE != 2

void race_launch_begin(Launch*) {}
void race_launch_end() {}
void race_join_warp(BlockState*, u32, u32) {}
void race_join_block(BlockState*) {}
void race_join_some(BlockState*, const std::vector<u16>&) {}
void race_join_grid() {}

#else

namespace {

constexpr u32 MOST_RECORDS = 96;  // per 4 bytes; more readers than that are forgotten, never invented

struct Record {
    u32 block, epoch, lanes, clock, release, next;
    const void* pc;
    u8 warp, kind, bytes;
};

struct Cell {
    u32 stamp, head;
};

struct Pool {
    std::vector<Record> records;
    u32 free = 0;
    Pool() { clear(); }
    void clear() {
        records.clear();
        records.push_back({});  // index 0 is the end of a list
        free = 0;
    }
    u32 take() {
        if (free) {
            const u32 index = free;
            free = records[index].next;
            return index;
        }
        records.push_back({});
        return static_cast<u32>(records.size() - 1);
    }
    void give(u32 index) {
        records[index].next = free;
        free = index;
    }
};

struct SharedArray {
    char* start;
    u32 bytes;
    const SharedSite* site;
};

struct RaceBlock {
    u32 stamp = 0, linear = 0, epoch = 1, release = 0;
    std::vector<u32> clock;              // per thread
    std::vector<u32> know;               // per thread: 32 lanes of its warp
    std::vector<std::vector<u32> > far;  // per thread, empty unless barriers of some threads are used
    std::vector<u8> fenced;              // per thread
    std::unordered_map<u32, u32> known;  // per other block: its releases that this one has seen
    std::vector<u8> initialised;         // per byte of the arena
    std::vector<SharedArray> arrays;
    Pool pool;
    u32 used = 0;
};

Cell* cells = nullptr;
Pool global_pool;
u32 stamps = 0, launch_stamp = 0;
std::unordered_map<BlockState*, RaceBlock> states;
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

inline bool in_arena(const BlockState* b, const char* p) {
    return static_cast<size_t>(p - b->arena) < 2 * SHARED_PER_MULTIPROCESSOR + 64 * 1024;
}

bool ordered(const Record& r, const BlockState* b, const RaceBlock& s, u32 me) {
    if (r.block != s.linear) {
        auto seen = s.known.find(r.block);
        return seen != s.known.end() && seen->second > r.release;
    }
    if (r.epoch < s.epoch) return true;
    (void)b;
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

const char* word(u8 kind) {
    return kind == READ ? "read" : kind == WRITE ? "write" : "atomic";
}

// A plain read before a compare-and-swap loop is how CUDA's guide writes such loops: a read that conflicts with an
// atomic is told only if the reader makes no atomic access at the same place afterwards. The same line need not reach
// the atomic in every thread: such loops end early where there is nothing to change.
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

void report_race(const Record& r, const BlockState* b, const RaceBlock& s, u32 me, const char* address, u32 bytes,
                 Access kind, const void* pc, bool in_shared, size_t word_at) {
    u32 lanes = r.lanes;
    if (r.block == s.linear && r.warp == me >> 5) lanes &= ~(1u << (me & 31));
    const u32 other = r.warp * 32u + static_cast<u32>(lanes ? __builtin_ctz(lanes) : 0);
    std::string where = in_shared ? "shared memory" : "device memory";
    if (in_shared)
        for (const SharedArray& a : s.arrays)
            if (address >= a.start && address < a.start + a.bytes && a.site)
                where = std::string("shared array `") + a.site->name + "`";
    Report report = report_here("race",
                                std::string(word(static_cast<u8>(kind))) + " of " + where +
                                    " that is not ordered with another thread's " + word(r.kind),
                                {nullptr, 0, pc});
    report.has_other = true;
    report.other = {nullptr, 0, r.pc};
    report.other_block = block_coordinates(b->launch, r.block);
    report.other_thread = thread_coordinates(b, other);
    if (kind == READ && r.kind == ATOMIC) {
        reads_in_doubt.emplace(std::make_tuple(s.linear, me, word_at), Doubt{std::move(report), pc});
        return;
    }
    if (kind == ATOMIC && r.kind == READ) {
        reads_in_doubt.emplace(std::make_tuple(r.block, other, word_at), Doubt{std::move(report), r.pc});
        return;
    }
    if (kind == WRITE && r.kind == WRITE && bytes <= 16) {
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

void check_bounds(BlockState* b, RaceBlock& s, const char* p, u32 bytes, Access kind, const void* pc) {
    const size_t at = static_cast<size_t>(p - heap_base);
    for (size_t byte = at; byte < at + bytes;) {
        const u32 valid = heap_valid[byte / 8], inside = static_cast<u32>(byte % 8);
        if (valid <= inside) {
            std::string text = std::string(word(static_cast<u8>(kind))) + " of " + std::to_string(bytes) + " byte" +
                               (bytes == 1 ? "" : "s");
            if (in_arena(b, p)) {
                const SharedArray* nearest = nullptr;
                long best = 1 << 30;
                for (const SharedArray& a : s.arrays) {
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

void check_initialised(RaceBlock& s, BlockState* b, const char* p, u32 bytes, Access kind, const void* pc) {
    const size_t at = static_cast<size_t>(p - b->arena);
    u8* flags = s.initialised.data() + at;
    if (at + bytes > s.initialised.size()) return;
    if (kind != WRITE) {
        for (u32 i = 0; i < bytes; ++i) {
            if (flags[i]) continue;
            std::string name = "dynamic shared memory";
            for (const SharedArray& a : s.arrays)
                if (p >= a.start && p < a.start + a.bytes && a.site)
                    name = std::string("the shared array `") + a.site->name + "`";
            if (heap_valid[static_cast<size_t>(p - heap_base) / 8])
                add_report(report_here("uninitialised_shared",
                                       std::string(word(static_cast<u8>(kind))) + " of " + name +
                                           " before any thread of the block wrote there",
                                       {nullptr, 0, pc}));
            break;
        }
    }
    if (kind != READ) {
        std::memset(flags, 1, bytes);
        const u32 end = static_cast<u32>(at + bytes);
        if (end > s.used) s.used = end;
    }
}

void check_race(BlockState* b, RaceBlock& s, const char* p, u32 bytes, Access kind, const void* pc, bool in_shared) {
    const u32 me = b->current, stamp = in_shared ? s.stamp : launch_stamp;
    Pool& pool = in_shared ? s.pool : global_pool;
    const bool variable = in_variables(p);
    const size_t first = static_cast<size_t>(p - (variable ? variables_start : heap_base)), last = first + bytes;
    bool reported = false;
    for (size_t word_at = first / 4; word_at * 4 < last; ++word_at) {
        u8 mask = 0;
        for (u32 i = 0; i < 4; ++i)
            if (word_at * 4 + i >= first && word_at * 4 + i < last) mask |= static_cast<u8>(1u << i);
        if (kind == ATOMIC && !reads_in_doubt.empty())
            reads_in_doubt.erase({s.linear, me, word_at + (variable ? HEAP_BYTES : 0)});
        Cell& cell = variable ? variable_cells[word_at] : cells[word_at];
        if (cell.stamp != stamp) cell.stamp = stamp, cell.head = 0;
        u32* link = &cell.head;
        u32 count = 0, same = 0;
        while (*link) {
            const u32 index = *link;
            Record& r = pool.records[index];
            ++count;
            if (kind == ATOMIC && r.kind == READ && r.block == s.linear && r.warp == me >> 5 &&
                (r.lanes >> (me & 31) & 1)) {
                // This thread's own read led to this atomic.
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
                const bool before = own || ordered(r, b, s, me);
                if (!before && !reported && (kind != READ || r.kind != READ) && !(kind == ATOMIC && r.kind == ATOMIC)) {
                    reported = true;
                    report_race(r, b, s, me, p, bytes, kind, pc, in_shared, word_at + (variable ? HEAP_BYTES : 0));
                }
                // What is before this access, and covered by it, need not be kept: whoever is after this is after that.
                if (before && (r.bytes & ~mask) == 0 && (kind == WRITE || kind == r.kind)) {
                    *link = r.next;
                    pool.give(index);
                    continue;
                }
            }
            if (r.block == s.linear && r.warp == me >> 5 && r.epoch == s.epoch && r.clock == s.clock[me] &&
                r.kind == kind && r.bytes == mask && r.pc == pc)
                same = index;
            link = &pool.records[index].next;
        }
        if (same) {
            pool.records[same].lanes |= 1u << (me & 31);
        } else if (count < MOST_RECORDS) {
            const u32 index = pool.take();
            Record& r = pool.records[index];
            r = Record{s.linear, s.epoch, 1u << (me & 31),          s.clock[me],           s.release,
                       0,        pc,      static_cast<u8>(me >> 5), static_cast<u8>(kind), mask};
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
    RaceBlock& s = states[b];
    const bool in_shared = !variable && in_arena(b, p);
    if (!variable) check_bounds(b, s, p, bytes, kind, pc);
    if (in_shared) check_initialised(s, b, p, bytes, kind, pc);
    const bool synchronises = kind == ATOMIC && !in_shared;
    if (synchronises) acquire(s, address);
    check_race(b, s, p, bytes, kind, pc, in_shared);
    if (synchronises) release(s, address, b->current);
    busy = false;
}

// A volatile access of device memory is how threads of different blocks talk; of shared memory it is a plain one.
void announce_volatile(const void* address, u32 bytes, bool write, const void* pc) {
    if (!block) return;
    const bool in_shared = in_heap(address) && in_arena(here(), static_cast<const char*>(address));
    announce(address, bytes, in_shared ? (write ? WRITE : READ) : ATOMIC, pc);
    breathe();
}

void fence_device() {
    if (block) states[here()].fenced[block->current] = 1;
}

void race_launch_begin(Launch*) {
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
    RaceBlock& s = states[b];
    const u32 n = b->launch->threads, warps = (n + 31) / 32 * 32;
    s.stamp = ++stamps;
    s.linear = static_cast<u32>(b->linear);
    s.epoch = 1;
    s.release = 0;
    s.clock.assign(n, 1);
    s.know.assign(warps * 32, 0);
    s.far.clear();
    s.fenced.assign(n, 0);
    s.known.clear();
    s.pool.clear();
    if (s.initialised.empty()) s.initialised.resize(2 * SHARED_PER_MULTIPROCESSOR + 64 * 1024);
    std::memset(s.initialised.data(), 0, s.used);
    s.used = 0;
    for (const SharedArray& a : s.arrays) forbid_region(a.start, a.bytes);
    s.arrays.clear();
    if (b->launch->config.shared) {
        s.arrays.push_back({b->dynamic, static_cast<u32>(b->launch->config.shared), nullptr});
        allow_region(b->dynamic, b->launch->config.shared);
    }
}

void race_join_warp(BlockState* b, u32 warp, u32 lanes) {
    settle_pending();
    RaceBlock& s = states[b];
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
    if (s.far.empty()) return;
    std::vector<u16> members;
    for (u32 left = lanes; left; left &= left - 1)
        members.push_back(static_cast<u16>(warp * 32 + static_cast<u32>(__builtin_ctz(left))));
    race_join_some(b, members);
}

void race_join_block(BlockState* b) {
    settle_pending();
    RaceBlock& s = states[b];
    tell_doubtful_reads(s.linear);
    ++s.epoch;
    std::fill(s.clock.begin(), s.clock.end(), 1);
    std::fill(s.know.begin(), s.know.end(), 0);
    s.far.clear();
}

void race_join_some(BlockState* b, const std::vector<u16>& members) {
    settle_pending();
    RaceBlock& s = states[b];
    const size_t n = s.clock.size(), room = (n + 31) / 32 * 32;
    if (s.far.empty()) s.far.resize(n);
    std::vector<u32> joined(room, 0);
    for (u16 id : members) {
        joined[id] = std::max(joined[id], s.clock[id]);
        for (u32 l = 0; l < 32; ++l) {
            u32& there = joined[(id & ~31u) + l];
            there = std::max(there, s.know[id * 32u + l]);
        }
        if (!s.far[id].empty())
            for (size_t i = 0; i < room; ++i) joined[i] = std::max(joined[i], s.far[id][i]);
    }
    for (u16 id : members) {
        s.far[id] = joined;
        for (u32 l = 0; l < 32; ++l) s.know[id * 32u + l] = std::max(s.know[id * 32u + l], joined[(id & ~31u) + l]);
        ++s.clock[id];
    }
}

void race_join_grid() {
    settle_pending();
    launch_stamp = ++stamps;
    global_pool.clear();
    for (auto& [b, s] : states) {
        ++s.epoch;
        std::fill(s.clock.begin(), s.clock.end(), 1);
        std::fill(s.know.begin(), s.know.end(), 0);
        s.far.clear();
    }
}

void race_launch_end() {
    settle_pending();
    for (auto& [key, doubt] : reads_in_doubt) tell(doubt);
    reads_in_doubt.clear();
}

#endif

#if SIM_MODE == 2
void race_shared_site(BlockState* b, char* start, u32 bytes, const SharedSite* site) {
    RaceBlock& s = states[b];
    s.arrays.push_back({start, bytes, site});
    allow_region(start, bytes);
}
#elif SIM_MODE == 1
void race_shared_site(BlockState* b, char* start, u32 bytes, const SharedSite*) {
    (void)b;
    allow_region(start, bytes);
}
// Only the block's own arrays may be touched, each exactly.
void race_block_begin(BlockState* b) {
    forbid_region(b->arena, 2 * SHARED_PER_MULTIPROCESSOR + 64 * 1024);
    if (b->launch->config.shared) allow_region(b->dynamic, b->launch->config.shared);
}
#else
void race_shared_site(BlockState*, char*, u32, const SharedSite*) {}
void race_block_begin(BlockState*) {}
#endif

}  // namespace sim
