// A grid: its blocks over OS threads, and the launch around them.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <thread>

#include "heap.h"
#include "state.h"

namespace sim {

Settings settings;
cudaError_t sticky_error = cudaSuccess;
cudaError_t last_error = cudaSuccess;

namespace {

constexpr u32 RESIDENT_SPINNERS = 2048;  // blocks kept half-run because they wait for blocks not yet started

// ---- running blocks ------------------------------------------------------------------------------------------------

BlockState* spare_block() {
    Worker& w = *worker;
    if (!w.spare.empty()) {
        BlockState* b = w.spare.back();
        w.spare.pop_back();
        return b;
    }
    auto* b = new BlockState;
    b->state = b;
    b->arena = shared_arena(ARENA_BYTES);
    std::memset(b->arena, 0xff, ARENA_BYTES);
    return b;
}

void begin_block(BlockState* b, Launch* l, u64 linear) {
    if (b->waited) forget_waits(b);
    b->launch = l;
    b->worker = worker;
    b->linear = linear;
    b->index = block_coordinates(l, linear);
    b->next = b->current = b->ready_warps = b->later_warps = b->spin = b->finished = 0;
    b->wide_waiting = b->asking = b->spinning = b->streak = b->cluster_rank = 0;
    b->groups[0] = b->groups[1] = nullptr;
    b->count = l->threads;
    b->upcoming = uint3{0, 0, 0};
    b->status = Status::RUNNING;
    b->generation = l->generation;
    b->exit_reported = b->force_start = false;
    b->statics = b->arena;
    b->dynamic = b->arena + DYNAMIC_AT;
    if (!b->async.empty()) b->async.clear();
    if (!b->mbarriers.empty()) {
        b->mbarriers.clear();
        for (Thread& thread : b->threads) thread.wait = Wait::NONE;
    }
    if (!b->bulk.empty()) b->bulk.clear();
    b->slow = settings.order != Order::ASCENDING;
    if (b->slow) {
        for (u32 i = 0; i < b->count; ++i) b->order[i] = static_cast<u16>(i);
        if (settings.order == Order::REVERSE) {
            std::reverse(b->order.begin(), b->order.begin() + b->count);
        } else {
            b->random = settings.seed * 0x9E3779B97F4A7C15ull + linear * 0xD1B54A32D192ED03ull + 1;
            for (u32 i = b->count; i > 1; --i) std::swap(b->order[i - 1], b->order[random_below(b, i)]);
        }
    }
    // Shared memory starts as nothing a kernel could want: NaN, -1.
#if SIM_MODE == 1
    allow_region(b->arena, ARENA_BYTES);
#endif
    const u32 used = l->statics_used.load(std::memory_order_relaxed);
    if (used) std::memset(b->statics, 0xff, used);
    if (l->config.shared) std::memset(b->dynamic, 0xff, l->config.shared);
    race_block_begin(b);
    bounds_block_begin(b);
    b->sites = 0;
    if (SIM_MODE) learn_sites(b);
}

void end_block(BlockState* b) {
    if (b->status == Status::ABORTED) reset_fibers();
    worker->spare.push_back(b);
}

// Which block, or cluster, of `count` has the turn.
u64 place_of(u64 count, u64 turn) {
    if (settings.order == Order::ASCENDING) return turn;
    if (settings.order == Order::REVERSE) return count - 1 - turn;
    // A fixed odd multiplier visits every residue once when it shares no factor with the count.
    u64 step = (settings.seed * 2 + 1) * 0x9E3779B1ull % count;
    auto gcd = [](u64 a, u64 c) {
        while (c) std::swap(a %= c, c);
        return a;
    };
    while (step == 0 || gcd(step, count) != 1) step = (step + 1) % std::max<u64>(count, 2);
    return (turn * step + settings.seed) % count;
}

// The blocks of a cluster or of a cooperative grid: all resident, on one OS thread, each as far as it gets in turn.
void run_together(Launch* l, const std::vector<BlockState*>& blocks) {
    for (bool done = false; !done && !l->aborted;) {
        bool moved = false;
        done = true;
        for (BlockState* b : blocks) {
            if (b->status == Status::DONE) continue;
            done = false;
            if (b->status == Status::WAITING && !b->ready_warps) continue;
            moved = true;
            enter_block(b);
            if (b->status == Status::DONE) {
                race_block_end(b);
                bounds_block_end(b);
            }
            if (l->aborted) break;
        }
        if (!done && !moved) {
            // Each waits for another. One that does says so.
            for (BlockState* b : blocks)
                if (b->status == Status::WAITING) {
                    b->wide_waiting = 0;
                    enter_block(b);
                    break;
                }
        }
    }
    for (BlockState* b : blocks) {
        if (l->aborted) b->status = Status::ABORTED;
        end_block(b);
    }
}

// The blocks of one cluster, by rank.
void begin_cluster(Launch* l, u64 number, Group* group) {
    const dim3 g = l->config.grid, c = l->config.cluster;
    const u64 across = g.x / c.x, down = g.y / c.y;
    const u64 x = number % across * c.x, y = number / across % down * c.y, z = number / (across * down) * c.z;
    for (u32 rank = 0; rank < l->cluster; ++rank) {
        BlockState* b = spare_block();
        const u64 bx = x + rank % c.x, by = y + rank / c.x % c.y, bz = z + rank / (c.x * c.y);
        begin_block(b, l, bx + g.x * (by + g.y * bz));
        b->cluster_rank = rank;
        b->groups[static_cast<u32>(Wide::CLUSTER)] = group;
        group->blocks.push_back(b);
        // Every exit counts from the start: the cluster's barrier waits for those that have not ended.
        first_wait(b);
    }
    group->barrier.alive = l->cluster * l->threads;
}

void work_cooperative(Launch* l) {
    Group grid;
    std::deque<Group> clusters;
    if (l->cluster > 1) {
        for (u64 i = 0; i < l->units; ++i) {
            begin_cluster(l, place_of(l->units, i), &clusters.emplace_back());
            for (BlockState* b : clusters.back().blocks) grid.blocks.push_back(b);
        }
    } else {
        for (u64 i = 0; i < l->units; ++i) {
            grid.blocks.push_back(spare_block());
            begin_block(grid.blocks.back(), l, place_of(l->units, i));
            first_wait(grid.blocks.back());
        }
    }
    for (BlockState* b : grid.blocks) b->groups[static_cast<u32>(Wide::GRID)] = &grid;
    grid.barrier.alive = static_cast<u32>(l->blocks) * l->threads;
    run_together(l, grid.blocks);
}

// Runs blocks of the launch until none is left. Blocks that spin for others are kept and taken up again in turn.
void work(Launch* l) {
    std::deque<BlockState*> resident;
    bool more = true;
    while (!l->aborted.load(std::memory_order_relaxed)) {
        if (more) {
            const u64 first = l->next_unit.fetch_add(l->chunk);
            if (first >= l->units) more = false;
            for (u64 turn = first; turn < std::min(first + l->chunk, l->units); ++turn) {
                if (l->aborted.load(std::memory_order_relaxed)) break;
                if (l->cluster > 1) {
                    Group group;
                    begin_cluster(l, place_of(l->units, turn), &group);
                    run_together(l, group.blocks);
                    continue;
                }
                BlockState* b = spare_block();
                begin_block(b, l, place_of(l->units, turn));
                enter_block(b);
                if (b->status == Status::SPINNING)
                    resident.push_back(b);
                else
                    end_block(b);
                if (resident.size() > RESIDENT_SPINNERS) {
                    l->aborted = true;
                    Report r;
                    r.kind = "livelock";
                    r.kernel = l->kernel.name;
                    r.launched = {l->kernel.file, l->kernel.line};
                    r.place = r.launched;
                    r.message = "more than " + std::to_string(RESIDENT_SPINNERS) +
                                " blocks wait for blocks that have not started";
                    r.fatal = true;
                    add_report(std::move(r));
                }
            }
        }
        if (resident.empty()) {
            if (!more) break;
            continue;
        }
        BlockState* b = resident.front();
        resident.pop_front();
        enter_block(b);
        if (b->status == Status::SPINNING) {
            resident.push_back(b);
            if (!more) std::this_thread::yield();
        } else {
            end_block(b);
        }
    }
    for (BlockState* b : resident) {
        b->status = Status::ABORTED;
        end_block(b);
    }
}

// ---- OS threads ----------------------------------------------------------------------------------------------------

struct Pool {
    std::mutex lock;
    std::condition_variable wake, idle;
    Launch* job = nullptr;
    u64 ticket = 0;
    int wanted = 0, busy = 0;
    pid_t owner = 0;
    int threads = 0;
};
Pool* pool = nullptr;

constexpr size_t SIGNAL_STACK = 64 * 1024;

void prepare_os_thread() {
    if (worker) return;
    worker = new Worker;
#if SIM_MODE == 1
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* stack;
    pthread_attr_getstack(&attributes, &stack, &worker->main_bytes);
    worker->main.stack = static_cast<char*>(stack);
    pthread_attr_destroy(&attributes);
#endif
    stack_t alternative{};
    alternative.ss_sp = mmap(nullptr, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    alternative.ss_size = SIGNAL_STACK;
    sigaltstack(&alternative, nullptr);
}

void pool_main(Pool* p, int number) {
    prepare_os_thread();
    u64 seen = 0;
    std::unique_lock<std::mutex> hold(p->lock);
    for (;;) {
        p->wake.wait(hold, [&] { return p->ticket != seen && number < p->wanted; });
        seen = p->ticket;
        Launch* job = p->job;
        hold.unlock();
        blockDim = job->config.block;
        gridDim = job->config.grid;
        work(job);
        hold.lock();
        if (--p->busy == 0) p->idle.notify_all();
    }
}

void run_parallel(Launch* l, int helpers) {
    // A forked child has none of its parent's threads.
    if (!pool || pool->owner != getpid()) {
        pool = new Pool;
        pool->owner = getpid();
    }
    Pool& p = *pool;
    {
        std::unique_lock<std::mutex> hold(p.lock);
        while (p.threads < helpers) {
            std::thread(pool_main, &p, p.threads).detach();
            ++p.threads;
        }
        p.job = l;
        p.wanted = p.busy = helpers;
        ++p.ticket;
    }
    p.wake.notify_all();
    work(l);
    std::unique_lock<std::mutex> hold(p.lock);
    p.idle.wait(hold, [&] { return p.busy == 0; });
    p.wanted = 0;
}

void read_environment() {
    static bool once = false;
    if (once) return;
    once = true;
    settings.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    if (const char* text = std::getenv("KERNEL_WORKBENCH_SIM_THREADS")) settings.threads = std::max(1, std::atoi(text));
    if (const char* text = std::getenv("KERNEL_WORKBENCH_SIM_STACK_KB"))
        // Powers of two only: fibers.cpp.
        while (settings.stack < static_cast<size_t>(std::atoi(text)) * 1024) settings.stack *= 2;
}

std::mutex one_launch;

}  // namespace

// ---- the launch ----------------------------------------------------------------------------------------------------

namespace {

// Runs the grid once; false when it must begin again, with the cluster that the kernel asks for.
bool run_grid(const Kernel& kernel, Config& config) {
    static std::atomic<u32> generations{0};
    Launch l{kernel, config};
    l.threads = config.block.x * config.block.y * config.block.z;
    l.blocks = u64(config.grid.x) * config.grid.y * config.grid.z;
    l.cluster = config.cluster.x * config.cluster.y * config.cluster.z;
    l.units = l.blocks / l.cluster;
    l.generation = ++generations;
    blockDim = config.block;
    gridDim = config.grid;
    race_launch_begin();
    if (config.cooperative) {
        work_cooperative(&l);
    } else {
        const u64 total = l.blocks * l.threads;
        int helpers = SIM_MODE == 0 && settings.order == Order::ASCENDING ? settings.threads - 1 : 0;
        if (total < 8192) helpers = 0;
        helpers = static_cast<int>(std::min<u64>(static_cast<u64>(helpers), l.units - 1));
        l.chunk = std::max<u64>(
            1, std::min<u64>(l.units / (static_cast<u64>(helpers + 1) * 16), 65536 / (l.threads * l.cluster) + 1));
        if (helpers)
            run_parallel(&l, helpers);
        else
            work(&l);
    }
    race_launch_end();
    if (l.restart) {
        config.cluster = l.wanted_cluster;
        return false;
    }
    if (l.aborted) {
        sticky_error = last_error = cudaErrorLaunchFailure;
        throw std::runtime_error(last_fatal);
    }
    return true;
}

struct Builtins {
    uint3 thread = threadIdx, index = blockIdx;
    dim3 dim = blockDim, grid = gridDim;
    ~Builtins() { threadIdx = thread, blockIdx = index, blockDim = dim, gridDim = grid; }
};

}  // namespace

void launch(const Kernel& kernel, const Config& asked) {
    if (block) unsupported("a launch from inside a kernel (dynamic parallelism)", kernel.file, kernel.line);
    std::unique_lock<std::mutex> hold(one_launch);
    read_environment();
    record_launch(kernel);
    Config config = asked;
    prepare_os_thread();
    catch_faults();
    const Builtins before;
    do {
        if (!within_limits(kernel, config)) return;
    } while (!run_grid(kernel, config));
}

}  // namespace sim

extern "C" {

// Chooses the order in which threads and blocks run: 0 ascending, 1 reverse, 2 random by `seed`.
__attribute__((visibility("default"))) void kernel_workbench_sim_schedule(int order, unsigned long long seed) {
    sim::settings.order = static_cast<sim::Order>(order);
    sim::settings.seed = seed;
}
}
