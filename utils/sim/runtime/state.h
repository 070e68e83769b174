// What the runtime's own files share; no kernel includes this.
#pragma once

#include <sim/core.h>

#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace sim {

// The simulated device: an H200's limits, with few multiprocessors so that cooperative grids stay small.
constexpr int MULTIPROCESSORS = 8;
constexpr int THREADS_PER_MULTIPROCESSOR = 2048;
constexpr int BLOCKS_PER_MULTIPROCESSOR = 32;
constexpr size_t SHARED_PER_MULTIPROCESSOR = 228 * 1024;
constexpr size_t SHARED_DEFAULT = 48 * 1024;
constexpr size_t SHARED_OPT_IN = 227 * 1024;

// One block's shared memory: static arrays from its start, dynamic memory behind them.
constexpr size_t DYNAMIC_AT = SHARED_PER_MULTIPROCESSOR + 32 * 1024;
constexpr size_t ARENA_BYTES = 2 * SHARED_PER_MULTIPROCESSOR + 64 * 1024;

// A stack, and at its top this; every stack is aligned to its size, a power of two (fibers.cpp).
struct Fiber {
    Context context;
    char* stack = nullptr;  // the lowest byte
    Fiber* next_free = nullptr;
    void* fake_stack = nullptr;  // AddressSanitizer's
};

struct AsyncCopy {
    void* target;
    const void* source;
    u32 bytes, source_bytes;
    u32 group;
    const void* pc;
};

struct AsyncQueue {
    std::vector<AsyncCopy> copies;
    u32 group = 0;
};

// What race mode knows to be before something: of each thread, and of each line of copies (race.h), how far.
struct Clocks {
    std::vector<u32> threads, copies;
};

// A copy that an mbarrier waits for and that has not been made yet, or the arrival that follows such copies.
struct TrackedCopy {
    char* target;
    const char* source;  // null: nothing to copy
    u32 bytes, source_bytes;
    u32 expected;  // bytes by which the mbarrier's count goes down
    bool arrives;
    u32 thread, clock;
    const char* file;
    int line;
};

// In a waiting thread's `mask`: which mbarrier, and whether the wait orders nothing.
constexpr u32 MBARRIER_NUMBER = 0xffffff, MBARRIER_RELAXED = 1u << 31;

struct MBarrier {
    char* at = nullptr;
    u32 expected = 0;     // arrivals of each phase
    u32 pending = 0;      // arrivals that this phase still waits for
    long long bytes = 0;  // expected and not copied yet
    u32 phase = 0;
    u32 waiters = 0;
    u32 waiting[32] = {};  // lanes of each warp
    std::deque<TrackedCopy> copies;
    const char* file = nullptr;  // where it was initialised, and by whom
    int line = 0;
    u32 thread = 0;
    u32 copier = 0;  // race mode
    Clocks joining, completed;
};

// A bulk copy from shared memory to device memory.
struct BulkStore {
    char* target;
    const char* source;  // null: read already, or nothing to copy
    u32 bytes, group;
    bool read;
    std::vector<char> data;  // once read
    u32 clock;
    const char* file;
    int line;
};

struct BulkQueue {
    std::deque<BulkStore> copies;
    u32 group = 0;
    u32 reader = 0, writer = 0;  // race mode: its lines of copies
};

enum class Status : u8 { RUNNING, DONE, WAITING, SPINNING, ABORTED };  // WAITING: for other blocks

// A barrier over several blocks, and where each of a block's threads stands in it.
struct WideBarrier {
    u32 arrived = 0, alive = 0;
    bool ordering = true;
};
struct WideLanes {
    u32 arrived = 0;  // lanes that came to the barrier that is not complete yet
    u32 owed = 0;     // lanes that came and have not waited for it yet
    u32 waiting = 0;
};

// Blocks that run together: those of a cluster, or of a cooperative grid.
struct Group {
    std::vector<BlockState*> blocks;  // by rank
    WideBarrier barrier;
};

struct BlockState : Block {
    Launch* launch = nullptr;
    Worker* worker = nullptr;
    uint3 index{};
    u64 linear = 0;
    Status status = Status::RUNNING;
    u32 finished = 0;
    u32 wide_waiting = 0;  // threads that wait for other blocks
    u32 asking = 0;        // threads that ask which lanes are with them
    u32 later_warps = 0;   // warps with lanes that spin
    u32 spinning = 0;      // yields since anything else happened
    u32 streak = 0;        // waits completed since the others last had a turn
    u64 random = 0;
    bool exit_reported = false;
    bool force_start = false;  // start a thread although others are ready
    Group* groups[2] = {};     // by Wide
    u32 cluster_rank = 0;
    std::array<u16, MAX_THREADS> order;
    std::array<WideLanes, 32> wide[2];
    std::array<std::vector<WarpOp*>, 32> ops;  // of each warp, all masks; reused
    std::vector<AsyncQueue> async;
    std::deque<MBarrier> mbarriers;  // all that were initialised; those invalidated too
    std::vector<BulkQueue> bulk;     // by thread, empty unless used
    u32 polls = 0;                   // rounds in which nothing moved but threads that wait for mbarriers
    char* arena = nullptr;
    struct SharedShadow* shadow = nullptr;  // race mode
    struct RaceBlock* race = nullptr;
};

struct Launch {
    Kernel kernel;
    Config config;
    u64 blocks = 0;
    u32 threads = 0;
    u32 cluster = 1;  // blocks in each
    u64 units = 0;    // clusters, or blocks where there are none
    u32 generation = 0;
    std::atomic<u64> next_unit{0};  // of blocks, or clusters
    std::atomic<bool> aborted{false};
    std::atomic<u32> statics_used{0};
    u64 chunk = 1;
    std::vector<SharedSite*> sites;    // placed so far (checking modes)
    std::atomic<bool> restart{false};  // with the cluster that the kernel itself asks for
    dim3 wanted_cluster;
};

struct Worker {
    Fiber main;  // of the OS thread itself
    size_t main_bytes = 0;
    Fiber* free = nullptr;
    std::vector<Fiber*> fibers;
    std::vector<BlockState*> spare;
    bool inside = false;  // simulated code is running on this OS thread
};

extern __thread Worker* worker SIM_TLS;

enum class Order : u8 { ASCENDING, REVERSE, RANDOM };
struct Settings {
    Order order = Order::ASCENDING;
    u64 seed = 0;
    int threads = 1;
    size_t stack = 256 * 1024;
};
extern Settings settings;

inline BlockState* state_of(Block* b) {
    return static_cast<BlockState*>(b);
}
inline BlockState* here() {
    return block ? block->state : nullptr;
}

inline void make_ready(BlockState* b, u32 warp, u32 lanes) {
    b->warps[warp].ready |= lanes;
    b->ready_warps |= 1u << warp;
}
inline u32 warp_count(const BlockState* b) {
    return (b->count + 31) / 32;
}
inline bool has_ended(const BlockState* b, u32 id) {
    return b->warps[id >> 5].exited >> (id & 31) & 1;
}

// A number below n by the block's own generator.
inline u32 random_below(BlockState* b, u32 n) {
    b->random = b->random * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<u32>(((b->random >> 33) * n) >> 31);
}

// ---- reports.cpp
struct Place {
    const char* file = nullptr;
    int line = 0;
    const void* pc = nullptr;  // used when file is null
};
struct Report {
    std::string kind, message, kernel;
    Place place, other, launched;
    bool has_thread = false, has_other = false;
    uint3 block{}, thread{}, other_block{}, other_thread{};
    u64 count = 1;
    bool fatal = false;
};
void add_report(Report report);
Report report_here(const char* kind, std::string message, Place place);
std::string describe(const Report& report);
uint3 thread_coordinates(const BlockState* b, u32 id);
uint3 block_coordinates(const Launch* l, u64 linear);
extern std::string last_fatal;

void record_launch(const Kernel& kernel);

// ---- fibers.cpp
Fiber* take_fiber();
void give_fiber(Fiber* fiber);
Fiber* fiber_here();
void reset_fibers();
void go(Context* from, Context* to);  // switch_context, told to AddressSanitizer

// ---- scheduler.cpp
[[noreturn]] void abandon();
void enter_block(BlockState* b);  // returns when the block is done, waits for others, or is abandoned
void first_wait(BlockState* b);
void forget_waits(BlockState* b);
void wait_here(BlockState* b, Wait kind, u32 mask, const char* file, int line);
void let_others_run(BlockState* b);
void run_thread_to_its_end();  // what a fibre runs, over and over

// ---- waits.cpp, wide.cpp
void after_exit(BlockState* b, u32 id);
void after_exit_wide(BlockState* b);
BlockState* owner_of_shared(BlockState* b, const void* address);  // of b's cluster; null where it is no shared memory

// ---- shared.cpp
void learn_sites(BlockState* b);  // its shared arrays, those it has not come to included

// ---- stuck.cpp
bool release_converged(BlockState* b);
[[noreturn]] void stuck(BlockState* b);  // nobody can move: says so and abandons

// ---- mbarrier.cpp, bulk.cpp, shared.cpp
MBarrier& find_mbarrier(void* at, Access kind, const void* pc, const char* file, int line);
void make_copies(BlockState* b, MBarrier& bar);
void make_tracked_copies_of(BlockState* b, u32 thread);
void make_copy(BlockState* b, const TrackedCopy& copy);
void finish_copies(BlockState* b);  // at the end of the block
bool only_mbarrier_waiters(const BlockState* b);

// ---- faults.cpp, limits.cpp, grid.cpp
void catch_faults();
bool within_limits(const Kernel& kernel, const Config& config);
void set_opt_in_shared(const void* address, size_t bytes);
size_t opt_in_shared(const void* address);
void allow_non_portable_cluster(const void* address, bool yes);
u32 most_blocks_in_cluster(const void* address);
extern cudaError_t sticky_error, last_error;

// ---- heap.cpp: simulated device memory
void* device_allocate(size_t bytes);
void device_free(void* pointer);
char* shared_arena(size_t bytes);
bool find_allocation(const void* address, const char** start, size_t* bytes, bool* freed);

// ---- bounds.cpp, race.cpp
#if SIM_MODE != 0
void bounds_block_begin(BlockState* b);
void bounds_shared_site(BlockState* b, const SharedSite* site);
void bounds_block_end(BlockState* b);
#else
inline void bounds_block_begin(BlockState*) {}
inline void bounds_shared_site(BlockState*, const SharedSite*) {}
inline void bounds_block_end(BlockState*) {}
#endif
#if SIM_MODE == 2
void race_launch_begin();
void race_launch_end();
void race_block_begin(BlockState* b);
void race_block_end(BlockState* b);
void race_join_warp(BlockState* b, u32 warp, u32 lanes);
void race_join_block(BlockState* b);
void race_join_some(BlockState* b, const u32 (&members)[32]);
void race_join_wide(const Group& group, Wide which);
u32 race_copier(BlockState* b);
u32 race_next_copy(BlockState* b, u32 copier);
void race_copy(BlockState* b, u32 copier, u32 clock, const void* address, u32 bytes, Access kind, const void* pc);
void race_copy_known(BlockState* b, u32 id, u32 copier, u32 clock);
void race_copy_joins(Clocks& clocks, u32 copier, u32 clock);
void race_written(BlockState* b, const char* address, u32 bytes);
void race_publish(BlockState* b, u32 id, Clocks& clocks);
void race_learn(BlockState* b, u32 id, const Clocks& clocks);
#else
inline void race_launch_begin() {}
inline void race_launch_end() {}
inline void race_block_begin(BlockState*) {}
inline void race_block_end(BlockState*) {}
inline void race_join_warp(BlockState*, u32, u32) {}
inline void race_join_block(BlockState*) {}
inline void race_join_some(BlockState*, const u32 (&)[32]) {}
inline void race_join_wide(const Group&, Wide) {}
inline u32 race_copier(BlockState*) {
    return 0;
}
inline u32 race_next_copy(BlockState*, u32) {
    return 0;
}
inline void race_copy(BlockState*, u32, u32, const void*, u32, Access, const void*) {}
inline void race_copy_known(BlockState*, u32, u32, u32) {}
inline void race_copy_joins(Clocks&, u32, u32) {}
inline void race_written(BlockState*, const char*, u32) {}
inline void race_publish(BlockState*, u32, Clocks&) {}
inline void race_learn(BlockState*, u32, const Clocks&) {}
#endif

}  // namespace sim
