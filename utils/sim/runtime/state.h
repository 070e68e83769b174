// What the runtime's own files share; no kernel includes this.
#pragma once

#include <sim/core.h>

#include <array>
#include <atomic>
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

struct Fiber {
    void* sp = nullptr;
    char* stack = nullptr;
    size_t bytes = 0;
    Fiber* next_free = nullptr;
    u32 number = 0;
    bool busy = false;
    void* fake_stack = nullptr;  // AddressSanitizer's
};

struct Thread {
    Fiber* fiber;
    const char* file;
    int line;
    u32 mask;  // of the warp operation, or the id of the barrier
    Wait wait;
};

struct WarpOp {
    u32 mask = 0;
    u32 arrived = 0;
    u32 phase = 0;
    WarpKind kind = WarpKind::SYNC;
    Slot slot[2];
};

struct Warp {
    u32 exists = 0, exited = 0;
    u32 active_result = 0;
    std::vector<WarpOp*> ops;  // pending first; reused
};

struct Barrier {
    u32 arrived = 0, expected = 0, phase = 0;
    bool whole = true;
    u32 count = 0;  // how many brought true
    std::vector<u16> waiting;
    const char* file = nullptr;
    int line = 0;
    u32 first = 0;
    BarrierResult result[2];
    std::vector<u16> members;  // who arrived (checking modes)
};

struct AsyncCopy {
    void* target;
    const void* source;
    u32 bytes, source_bytes;
    u32 group;
    const char* file;
    int line;
};

struct AsyncQueue {
    std::vector<AsyncCopy> copies;
    u32 group = 0;
};

enum class Status : u8 { RUNNING, DONE, GRID, SPINNING, ABORTED };

struct BlockState : Block {
    Launch* launch = nullptr;
    Worker* worker = nullptr;
    uint3 index{};
    u64 linear = 0;
    Status status = Status::RUNNING;
    u32 finished = 0;
    u32 grid_waiting = 0;
    u32 spinning = 0;  // yields since anything else happened
    u64 random = 0;
    bool exit_reported = false;
    bool force_start = false;  // start a thread although others are ready
    u32 ready_head = 0;
    std::array<u16, 2 * MAX_THREADS> ready_ring;
    std::array<Thread, MAX_THREADS> threads;
    std::array<u16, MAX_THREADS> order;
    std::array<Warp, 32> warps;
    std::array<Barrier, 16> bars;
    std::vector<AsyncQueue> async;
    char* arena = nullptr;
};

struct Launch {
    Kernel kernel;
    Config config;
    u64 blocks = 0;
    u32 threads = 0;
    u32 generation = 0;
    std::atomic<u64> next_block{0};
    std::atomic<bool> aborted{false};
    std::atomic<u32> statics_used{0};
    u64 chunk = 1;
    std::vector<SharedSite*> sites;  // placed so far (checking modes)
};

struct Worker {
    Fiber main;
    Fiber* current = nullptr;
    Fiber* free = nullptr;
    std::vector<Fiber*> fibers;
    std::vector<BlockState*> spare;
    bool inside = false;  // simulated code is running on this OS thread
    u64 context_switches = 0;
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

inline void make_ready(BlockState* b, u32 id) {
    b->ready_ring[(b->ready_head + b->ready) & (2 * MAX_THREADS - 1)] = static_cast<u16>(id);
    ++b->ready;
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

// ---- scheduler.cpp
[[noreturn]] void abandon();
void enter_block(BlockState* b);  // returns when the block is done, waits for others, or is abandoned
void reset_fibers();

// ---- faults.cpp, limits.cpp, grid.cpp
void catch_faults();
bool within_limits(const Kernel& kernel, const Config& config);
void set_opt_in_shared(const void* address, size_t bytes);
size_t opt_in_shared(const void* address);
extern cudaError_t sticky_error, last_error;

// One block's shared memory: static arrays from its start, dynamic memory behind them.
constexpr size_t DYNAMIC_AT = SHARED_PER_MULTIPROCESSOR + 32 * 1024;
constexpr size_t ARENA_BYTES = 2 * SHARED_PER_MULTIPROCESSOR + 64 * 1024;

// ---- heap.cpp: simulated device memory
void* device_allocate(size_t bytes);
void device_free(void* pointer);
char* shared_arena(size_t bytes);
bool find_allocation(const void* address, const char** start, size_t* bytes, bool* freed);

// ---- race.cpp; empty functions outside race mode
void race_launch_begin(Launch* launch);
void race_launch_end();
void race_block_begin(BlockState* b);
void race_shared_site(BlockState* b, char* start, u32 bytes, const SharedSite* site);
void race_join_warp(BlockState* b, u32 warp, u32 lanes);
void race_join_block(BlockState* b);
void race_join_some(BlockState* b, const std::vector<u16>& members);
void race_join_grid();

}  // namespace sim
