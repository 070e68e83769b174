// The simulated machine as a kernel sees it: who am I, shared memory, waiting, and launches.
//
// A CUDA thread is a plain function call on the fibre that runs its block's loop. Only when it first waits (barrier,
// warp operation) does the loop go on, with the next thread, on another fibre. A block never leaves its OS thread, so
// everything about "here" is a thread-local that costs one instruction to reach.
//
// The common waits are made in line (warp.h): a lane that is neither the first nor the last of its warp to arrive
// leaves its value and goes straight to the next lane that may go on. All else is the scheduler's (runtime/).
#pragma once

#include <cuda_runtime_api.h>
#include <sim/switch.h>
#include <vector_functions.h>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

// Set by the build: 0 plain, 1 asan, 2 race.
#ifndef SIM_MODE
#define SIM_MODE 0
#endif

// Functions of the simulator that touch user memory and must not be instrumented: they announce the access themselves.
#if SIM_MODE == 2
#define SIM_RAW __attribute__((no_sanitize_thread, noinline))
#else
#define SIM_RAW
#endif

#define SIM_INLINE inline __attribute__((always_inline))
#define SIM_TLS __attribute__((tls_model("initial-exec")))
#define SIM_SITE const char *sim_file = __builtin_FILE(), int sim_line = __builtin_LINE()
#define SIM_HERE sim_file, sim_line

extern __thread uint3 threadIdx SIM_TLS;
extern __thread uint3 blockIdx SIM_TLS;
extern __thread dim3 blockDim SIM_TLS;
extern __thread dim3 gridDim SIM_TLS;
static constexpr int warpSize = 32;

namespace sim {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 MAX_THREADS = 1024;

struct Launch;
struct Worker;
struct Fiber;
struct BlockState;

enum class Wait : u8 { NONE, WARP, BARRIER, ACTIVE, CLUSTER, GRID, SPIN, MBARRIER };
enum class WarpKind : u8 { SYNC, SHUFFLE, VOTE, MATCH, REDUCE, MATRIX };

// A thread that waits, and for what.
struct Thread {
    Context context;
    const char* file;
    int line;
    u32 mask;  // of the warp operation, or the number of the barrier
    Wait wait;
    u8 yields;  // since it looked at an mbarrier in vain
};

// What the lanes of a warp operation brought. Stays valid until the same lanes complete two more operations.
struct Slot {
    u64 value[32];
    u32 bits;   // lanes whose value is not zero
    u32 lanes;  // lanes that took part
};

struct WarpOp {
    u32 mask = 0;
    u32 arrived = 0;
    u32 need = 0;  // lanes that must arrive
    u32 phase = 0;
    WarpKind kind = WarpKind::SYNC;
    Slot slot[2];
};

struct Warp {
    u32 ready = 0;  // lanes that may go on after a wait
    u32 later = 0;  // lanes that spin: they go on when nobody else can
    u32 exists = 0, exited = 0;
    WarpOp* op = nullptr;  // the last one used
};

struct BarrierResult {
    u32 count, all, any;
};

struct Barrier {
    u32 arrived = 0, need = 0, phase = 0;
    u32 count = 0;  // how many brought true
    bool whole = true;
    const char* file = nullptr;
    int line = 0;
    u32 first = 0;
    u32 waiting[32] = {};  // lanes of each warp
    u32 members[32] = {};  // those that only arrived included
    BarrierResult result[2];
};

// The part of a block that the inlined code touches; the scheduler's own state follows it.
struct Block {
    u32 next = 0;         // how many threads have started
    u32 count = 0;        // threads of the block
    u32 current = 0;      // linear index of the running thread
    u32 ready_warps = 0;  // warps that may have ready lanes
    u32 spin = 0;         // atomics in a row by the running thread
    u32 slow = 0;         // the order is not ascending
    u32 waited = 0;       // some thread of this block has waited: exits must be counted
    uint3 upcoming{};     // threadIdx of the next thread to start
    char* statics = nullptr;
    char* dynamic = nullptr;
    u32 generation = 0;  // of the launch
    u32 sites = 0;       // of the launch that this block knows (checking modes)
    BlockState* state = nullptr;
    Warp warps[32];
    Barrier barriers[16];
    Thread threads[MAX_THREADS];
};

extern __thread Block* block SIM_TLS;  // null outside a kernel

bool take_slow(Block* b);
void finish_slow(Block* b);

// Starts the next thread of the block; false when there is something better to do on this fibre.
SIM_INLINE bool take(Block* b) {
    if (__builtin_expect((b->ready_warps | b->slow) != 0 || b->next >= b->count, 0)) return take_slow(b);
    b->current = b->next++;
    b->spin = 0;
    threadIdx = b->upcoming;
    if (++b->upcoming.x == blockDim.x) {
        b->upcoming.x = 0;
        if (++b->upcoming.y == blockDim.y) {
            b->upcoming.y = 0;
            ++b->upcoming.z;
        }
    }
    return true;
}

// ---- shared memory -------------------------------------------------------------------------------------------------

// One `__shared__` declaration (one per template instantiation); its place in the block is settled at each launch.
struct SharedSite {
    u32 bytes;
    const char* name;
    const char* file;
    int line;
    u32 generation;
    u32 offset;
    u32 number;  // of the sites of this launch
};

void place_shared(SharedSite& site);

SIM_INLINE void* shared(SharedSite& site) {
    if (__builtin_expect(__atomic_load_n(&site.generation, __ATOMIC_ACQUIRE) != block->generation ||
                             (SIM_MODE && site.number >= block->sites),
                         0))
        place_shared(site);
    return block->statics + site.offset;
}

inline void* dynamic_shared() {
    return block->dynamic;
}

// ---- waiting -------------------------------------------------------------------------------------------------------

// The scheduler's half of what warp.h does in line.
const Slot& exchange_slow(u32 mask, u64 value, WarpKind kind, const char* file, int line);
const BarrierResult& barrier_slow(u32 id, u32 expected, bool value, bool wait, bool whole, const char* file, int line);

u32 active_lanes(const char* file, int line);
void yield_spin();

// Barriers over the blocks of a cluster or a grid.
enum class Wide : u8 { CLUSTER, GRID };
void wide_arrive(Wide which, bool ordering, const char* file, int line);
void wide_wait(Wide which, const char* file, int line);
bool grid_barrier_valid();

// The block's place in its cluster, and the shared memory of the cluster's blocks.
u32 cluster_rank();
uint3 cluster_place();
dim3 cluster_shape();
char* map_shared(const void* shared, u32 rank, const char* file, int line);
u32 map_shared_address(u32 address, u32 rank, const char* file, int line);
char* cluster_pointer(u64 address, const char* file, int line);
u32 shared_rank(const void* address);
void kernel_cluster(u32 x, u32 y, u32 z, const char* file, int line);

inline u32 lane_id() {
    return block->current & 31u;
}
inline u32 warp_id() {
    return block->current >> 5;
}
u32 warp_population();  // lanes that exist in this warp

// Called by every atomic: a thread that only spins must let the others go on.
inline void breathe() {
    if (block && ++block->spin > 256) yield_spin();
}

// ---- deferred copies (cp.async) ------------------------------------------------------------------------------------

void async_copy(void* shared_target, const void* source, u32 bytes, u32 source_bytes, const char* file, int line);
void async_commit();
void async_wait(u32 pending_groups_allowed);

// ---- trouble -------------------------------------------------------------------------------------------------------

[[noreturn]] void unsupported(const char* what, const char* file, int line);
[[noreturn]] void fatal(const char* kind, const char* message, const char* file, int line);
void complain(const char* kind, const char* message, const char* file, int line);

inline void launch_bounds(u32 most, SIM_SITE) {
    if (__builtin_expect(block->count > most, 0))
        fatal("launch_limit", "the block has more threads than the kernel's __launch_bounds__ allow", SIM_HERE);
}

// ---- accesses announced to the checker -----------------------------------------------------------------------------

// An atomic may also be a compare-and-swap, a load only, or one of block scope.
enum Access : int { READ = 0, WRITE = 1, ATOMIC = 2, CAS = ATOMIC | 4, BLOCK = 8, LOAD = 16, STORE = 32 };
#if SIM_MODE == 2
void announce(const void* address, u32 bytes, Access kind, const void* pc);
void fence_device();
void fence_sync(const void* address);
#define SIM_ANNOUNCE(address, bytes, kind) \
    ::sim::announce((const void*)(address), (bytes), (kind), __builtin_return_address(0))
#else
inline void fence_device() {}
#define SIM_ANNOUNCE(address, bytes, kind) ((void)0)
#endif
void check_aligned(const void* address, u32 bytes, const char* file, int line);

// ---- launching -----------------------------------------------------------------------------------------------------

struct Config {
    dim3 grid, block;
    size_t shared = 0;
    cudaStream_t stream = nullptr;
    bool cooperative = false;
    dim3 cluster{1, 1, 1};
    Config(dim3 g, dim3 b, size_t s = 0, cudaStream_t t = nullptr) : grid(g), block(b), shared(s), stream(t) {}
};

struct Kernel {
    const char* name;
    const char* file;
    int line;
    const void* address;  // null where the name alone does not say which instantiation
    void (*threads)(void* closure, Block* b);
    void* closure;
};

// Runs the whole grid; returns when it is done. Throws std::runtime_error after a fault in the kernel; a launch beyond
// the limits sets the error that cudaGetLastError returns, as on a device.
void launch(const Kernel& kernel, const Config& config);

template <class F>
void threads_of(void* closure, Block* b) {
    F& call = *static_cast<F*>(closure);
    while (take(b)) {
        call();
        if (__builtin_expect(b->waited, 0)) finish_slow(b);
    }
}

template <class F>
void launch_body(const char* name, const char* file, int line, const void* address, const Config& config, F& body) {
    launch(Kernel{name, file, line, address, &threads_of<F>, &body}, config);
}

// `0` given to a kernel: an integer where that fits, else a null pointer.
struct LiteralZero {
    template <class T, class = std::enable_if_t<std::is_pointer_v<T> || std::is_arithmetic_v<T>>>
    constexpr operator T() const {
        return T();
    }
};
// `{}` given to a kernel.
struct LiteralEmpty {
    template <class T>
    constexpr operator T() const {
        return T{};
    }
};

template <class F>
struct Launcher {
    F call;
    const char *name, *file;
    int line;
    const void* address;
    Config config;

    template <class T>
    static auto as_int(const T& value) {
        if constexpr (std::is_same_v<T, LiteralZero>)
            return 0;
        else
            return value;
    }

    template <class... A>
    void operator()(A&&... arguments) {
        // As on a device, the arguments are copied once, at the launch.
        std::tuple<std::decay_t<A>...> held(std::forward<A>(arguments)...);
        if constexpr ((std::is_same_v<std::decay_t<A>, LiteralZero> || ...)) {
            auto plain = std::apply([](const auto&... v) { return std::make_tuple(as_int(v)...); }, held);
            if constexpr (std::is_invocable_v<F&, decltype(as_int(std::declval<std::decay_t<A>>()))&...>) {
                auto body = [&] { std::apply(call, plain); };
                launch_body(name, file, line, address, config, body);
                return;
            } else {
                auto body = [&] { std::apply(call, held); };
                launch_body(name, file, line, address, config, body);
            }
        } else {
            auto body = [&] { std::apply(call, held); };
            launch_body(name, file, line, address, config, body);
        }
    }
};

template <class F>
Launcher<F> launcher(const char* name, const char* file, int line, const void* address, F call, dim3 grid, dim3 block,
                     size_t shared = 0, cudaStream_t stream = nullptr) {
    return Launcher<F>{call, name, file, line, address, Config(grid, block, shared, stream)};
}

// cudaLaunchKernel and its like: the arguments come as an array of pointers.
template <class... P, size_t... I>
void launch_with(void (*kernel)(P...), void** arguments, const Config& config, const char* file, int line,
                 std::index_sequence<I...>) {
    std::tuple<std::decay_t<P>...> held(*static_cast<std::decay_t<P>*>(arguments[I])...);
    auto body = [&] { std::apply(kernel, held); };
    launch_body("kernel", file, line, reinterpret_cast<const void*>(kernel), config, body);
}

}  // namespace sim
