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
    b->launch = l;
    b->worker = worker;
    b->linear = linear;
    b->index = block_coordinates(l, linear);
    b->next = b->ready = b->ready_head = b->spin = b->waited = b->finished = b->grid_waiting = b->spinning = 0;
    b->count = l->threads;
    b->upcoming = uint3{0, 0, 0};
    b->status = Status::RUNNING;
    b->generation = l->generation;
    b->exit_reported = b->force_start = false;
    b->statics = b->arena;
    b->dynamic = b->arena + DYNAMIC_AT;
    if (!b->async.empty()) b->async.clear();
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
    for (const SharedSite* site : l->sites) race_shared_site(b, b->statics + site->offset, site->bytes, site);
}

void end_block(BlockState* b) {
    if (b->status == Status::ABORTED) {
        reset_fibers();
        b->waited = 0;
    }
    worker->spare.push_back(b);
}

u64 place_of(Launch* l, u64 turn) {
    if (settings.order == Order::ASCENDING) return turn;
    if (settings.order == Order::REVERSE) return l->blocks - 1 - turn;
    // A fixed odd multiplier visits every residue once when it shares no factor with the count.
    u64 step = (settings.seed * 2 + 1) * 0x9E3779B1ull % l->blocks;
    auto gcd = [](u64 a, u64 c) {
        while (c) std::swap(a %= c, c);
        return a;
    };
    while (step == 0 || gcd(step, l->blocks) != 1) step = (step + 1) % std::max<u64>(l->blocks, 2);
    return (turn * step + settings.seed) % l->blocks;
}

// Runs blocks of the launch until none is left. Blocks that spin for others are kept and taken up again in turn.
void work(Launch* l) {
    std::deque<BlockState*> resident;
    bool more = true;
    while (!l->aborted.load(std::memory_order_relaxed)) {
        if (more) {
            const u64 first = l->next_block.fetch_add(l->chunk);
            if (first >= l->blocks) more = false;
            for (u64 turn = first; turn < std::min(first + l->chunk, l->blocks); ++turn) {
                if (l->aborted.load(std::memory_order_relaxed)) break;
                BlockState* b = spare_block();
                begin_block(b, l, place_of(l, turn));
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

// A cooperative grid: every block is resident, on one OS thread, and they meet at the grid's barrier.
void work_cooperative(Launch* l) {
    std::vector<BlockState*> blocks;
    for (u64 i = 0; i < l->blocks; ++i) {
        blocks.push_back(spare_block());
        begin_block(blocks.back(), l, place_of(l, i));
    }
    size_t done = 0;
    while (done < blocks.size() && !l->aborted) {
        size_t at_grid = 0;
        done = 0;
        for (BlockState* b : blocks) {
            if (l->aborted) break;
            if (b->status == Status::RUNNING || b->status == Status::SPINNING) enter_block(b);
            done += b->status == Status::DONE;
            at_grid += b->status == Status::GRID;
        }
        if (l->aborted || at_grid + done < blocks.size() || !at_grid) continue;
        if (SIM_MODE == 2) race_join_grid();
        for (BlockState* b : blocks) {
            if (b->status != Status::GRID) continue;
            for (u32 id = 0; id < b->count; ++id)
                if (b->threads[id].wait == Wait::GRID && !(b->warps[id >> 5].exited >> (id & 31) & 1))
                    make_ready(b, id);
            b->grid_waiting = 0;
            b->status = Status::RUNNING;
        }
    }
    const bool aborted = l->aborted;
    for (BlockState* b : blocks) {
        if (aborted) b->status = Status::ABORTED;
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
    worker->current = &worker->main;
#if SIM_MODE == 1
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    void* stack;
    pthread_attr_getstack(&attributes, &stack, &worker->main.bytes);
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
        settings.stack = static_cast<size_t>(std::max(64, std::atoi(text))) * 1024;
}

std::mutex one_launch;

}  // namespace

// ---- the launch ----------------------------------------------------------------------------------------------------

void launch(const Kernel& kernel, const Config& config) {
    static std::atomic<u32> generations{0};
    if (block) unsupported("a launch from inside a kernel (dynamic parallelism)", kernel.file, kernel.line);
    std::unique_lock<std::mutex> hold(one_launch);
    read_environment();
    record_launch(kernel);
    if (!within_limits(kernel, config)) return;
    Launch l{kernel, config};
    l.threads = config.block.x * config.block.y * config.block.z;
    l.blocks = u64(config.grid.x) * config.grid.y * config.grid.z;
    l.generation = ++generations;
    prepare_os_thread();
    catch_faults();
    const uint3 was_thread = threadIdx, was_block = blockIdx;
    const dim3 was_dim = blockDim, was_grid = gridDim;
    blockDim = config.block;
    gridDim = config.grid;
    if (SIM_MODE == 2) race_launch_begin(&l);
    if (config.cooperative) {
        work_cooperative(&l);
    } else {
        const u64 total = l.blocks * l.threads;
        int helpers = SIM_MODE == 0 && settings.order == Order::ASCENDING ? settings.threads - 1 : 0;
        if (total < 8192) helpers = 0;
        helpers = static_cast<int>(std::min<u64>(static_cast<u64>(helpers), l.blocks - 1));
        l.chunk =
            std::max<u64>(1, std::min<u64>(l.blocks / (static_cast<u64>(helpers + 1) * 16), 65536 / l.threads + 1));
        if (helpers)
            run_parallel(&l, helpers);
        else
            work(&l);
    }
    if (SIM_MODE == 2) race_launch_end();
    threadIdx = was_thread;
    blockIdx = was_block;
    blockDim = was_dim;
    gridDim = was_grid;
    if (l.aborted) {
        sticky_error = last_error = cudaErrorLaunchFailure;
        throw std::runtime_error(last_fatal);
    }
}

}  // namespace sim

extern "C" {

// Chooses the order in which threads and blocks run: 0 ascending, 1 reverse, 2 random by `seed`.
__attribute__((visibility("default"))) void kernel_workbench_sim_schedule(int order, unsigned long long seed) {
    sim::settings.order = static_cast<sim::Order>(order);
    sim::settings.seed = seed;
}
}
