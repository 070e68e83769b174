// One block: its threads over fibres, and what waits for what.
//
// A fibre runs the block's loop: start a thread, run it to its end, start the next. A thread that must wait parks its
// fibre; the loop goes on, on another one, with a thread that may go on or else the next unstarted one. When neither is
// left the block is done, waits for its grid, spins, or is stuck; a stuck block is a finding, never a hang.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"
#include "switch.h"

#if SIM_MODE == 1
#include <sanitizer/asan_interface.h>
extern "C" void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void* save, const void** bottom, size_t* size);
#endif

__thread uint3 threadIdx SIM_TLS = {0, 0, 0};
__thread uint3 blockIdx SIM_TLS = {0, 0, 0};
__thread dim3 blockDim SIM_TLS(1, 1, 1);
__thread dim3 gridDim SIM_TLS(1, 1, 1);

namespace sim {

__thread Block* block SIM_TLS = nullptr;
__thread Worker* worker SIM_TLS = nullptr;

namespace {

constexpr u32 GUARDED_FIBERS = 4096;  // each guard page costs a mapping, of which a process has some 65,000

__thread Launch* running = nullptr;

// ---- fibres --------------------------------------------------------------------------------------------------------

void fiber_entry();

Fiber* fresh_fiber() {
    Worker& w = *worker;
    auto* fiber = new Fiber;
    fiber->number = static_cast<u32>(w.fibers.size());
    fiber->bytes = settings.stack;
    void* memory =
        mmap(nullptr, fiber->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        std::fprintf(stderr, "simulator: no memory for the stack of a simulated thread\n");
        std::abort();
    }
    fiber->stack = static_cast<char*>(memory);
    if (fiber->number < GUARDED_FIBERS) mprotect(memory, 4096, PROT_NONE);
    w.fibers.push_back(fiber);
    return fiber;
}

void reset_fiber(Fiber* fiber) {
#if SIM_MODE == 1
    __asan_unpoison_memory_region(fiber->stack + 4096, fiber->bytes - 4096);
#endif
    // Tops at different distances from a page boundary, or all live frames would share the same few cache sets.
    const size_t colour = (fiber->number * 832u) % 16384u & ~size_t(63);
    fiber->sp = prepare_stack(fiber->stack + fiber->bytes - 64 - colour, fiber_entry);
}

Fiber* take_fiber() {
    Worker& w = *worker;
    Fiber* fiber = w.free;
    if (fiber) {
        w.free = fiber->next_free;
    } else {
        fiber = fresh_fiber();
        reset_fiber(fiber);
    }
    fiber->busy = true;
    return fiber;
}

void give_fiber(Fiber* fiber) {
    fiber->busy = false;
    fiber->next_free = worker->free;
    worker->free = fiber;
}

inline void go(Fiber* to) {
    Fiber* from = worker->current;
    worker->current = to;
#if SIM_MODE == 1
    __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->bytes);
#endif
    sim_switch(&from->sp, to->sp);
#if SIM_MODE == 1
    __sanitizer_finish_switch_fiber(worker->current->fake_stack, nullptr, nullptr);
#endif
}

// ---- the ready ring ------------------------------------------------------------------------------------------------

u32 pop_ready(BlockState* b) {
    constexpr u32 M = 2 * MAX_THREADS - 1;
    if (settings.order != Order::ASCENDING) {
        const u32 pick = settings.order == Order::REVERSE ? b->ready - 1 : random_below(b, b->ready);
        std::swap(b->ready_ring[(b->ready_head + pick) & M], b->ready_ring[b->ready_head & M]);
    }
    const u32 id = b->ready_ring[b->ready_head & M];
    ++b->ready_head;
    --b->ready;
    return id;
}

void stuck(BlockState* b);

// Finds what this OS thread does next, and does it. The caller's fibre is either parked in a wait or free.
void leave(BlockState* b) {
    for (;;) {
        const bool start_first =
            settings.order == Order::RANDOM && b->next < b->count && b->ready && random_below(b, 2);
        if (b->ready && !start_first) {
            Fiber* fiber = b->threads[pop_ready(b)].fiber;
            if (fiber == worker->current) return;
            go(fiber);
            return;
        }
        if (b->next < b->count) {
            Fiber* fiber = take_fiber();
            b->force_start = start_first;
            if (fiber != worker->current) go(fiber);
            return;
        }
        if (!b->waited || b->finished == b->count) {
            b->status = Status::DONE;
            go(&worker->main);
            return;
        }
        if (b->grid_waiting && b->grid_waiting + b->finished == b->count) {
            b->status = Status::GRID;
            go(&worker->main);
            // The main loop resumes a block on a fresh fibre; this one continues only when its thread is ready.
            return;
        }
        stuck(b);
    }
}

void fiber_entry() {
#if SIM_MODE == 1
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    for (;;) {
        Launch* l = running;
        l->kernel.threads(l->kernel.closure, block);
        give_fiber(worker->current);
        leave(here());
    }
}

// ---- the first wait of a block -------------------------------------------------------------------------------------

void first_wait(BlockState* b) {
    b->waited = 1;
    for (u32 w = 0; w * 32 < b->count; ++w) {
        Warp& warp = b->warps[w];
        warp.exists = b->count - w * 32 >= 32 ? ~0u : (1u << (b->count - w * 32)) - 1;
        warp.exited = 0;
        for (WarpOp* op : warp.ops) op->mask = 0, op->arrived = 0;
    }
    // Everyone who started before the current thread has ended without waiting.
    b->finished = b->next - 1;
    for (u32 i = 0; i + 1 < b->next; ++i) {
        const u32 id = b->slow ? b->order[i] : i;
        b->warps[id >> 5].exited |= 1u << (id & 31);
    }
    for (Barrier& bar : b->bars) {
        bar.arrived = bar.expected = bar.count = 0;
        bar.waiting.clear();
        bar.members.clear();
        bar.file = nullptr;
    }
}

inline void wait_here(BlockState* b, Wait kind, u32 mask, const char* file, int line) {
    const u32 id = b->current;
    const uint3 coordinates = threadIdx;
    Thread& me = b->threads[id];
    me.fiber = worker->current;
    me.wait = kind;
    me.mask = mask;
    me.file = file;
    me.line = line;
    leave(b);
    me.wait = Wait::NONE;
    b->current = id;
    b->spin = 0;
    threadIdx = coordinates;
}

// ---- warp operations -----------------------------------------------------------------------------------------------

WarpOp* find_op(Warp& warp, u32 mask) {
    WarpOp* spare = nullptr;
    for (WarpOp* op : warp.ops) {
        if (op->mask == mask) return op;
        if (!op->arrived && !spare) spare = op;
    }
    // An op of another mask may be reused once its readers have gone: with a few kept, they have.
    if (!spare || warp.ops.size() < 8) {
        spare = new WarpOp;
        warp.ops.push_back(spare);
    } else {
        std::rotate(warp.ops.begin(), std::find(warp.ops.begin(), warp.ops.end(), spare) + 1, warp.ops.end());
    }
    spare->mask = mask;
    spare->arrived = 0;
    spare->phase = 0;
    spare->slot[0].bits = spare->slot[1].bits = 0;
    return spare;
}

const Slot& complete(BlockState* b, u32 warp, WarpOp* op, u32 self) {
    Slot& slot = op->slot[op->phase];
    slot.lanes = op->arrived;
    if (SIM_MODE == 2 && op->kind == WarpKind::SYNC) race_join_warp(b, warp, op->arrived);
    u32 others = op->arrived & ~self;
    op->arrived = 0;
    op->phase ^= 1;
    op->slot[op->phase].bits = 0;
    while (others) {
        const u32 lane = static_cast<u32>(__builtin_ctz(others));
        others &= others - 1;
        make_ready(b, warp * 32 + lane);
    }
    b->spinning = 0;
    return slot;
}

void complete_barrier(BlockState* b, Barrier& bar) {
    BarrierResult& result = bar.result[bar.phase];
    result.count = bar.count;
    result.any = bar.count != 0;
    result.all = bar.count == bar.arrived;
    if (SIM_MODE == 2) {
        if (bar.whole)
            race_join_block(b);
        else
            race_join_some(b, bar.members);
    }
    for (u16 id : bar.waiting) make_ready(b, id);
    bar.waiting.clear();
    bar.members.clear();
    bar.arrived = bar.count = 0;
    bar.phase ^= 1;
    bar.file = nullptr;
    b->spinning = 0;
}

// Some thread has ended: what waited for it may be complete now.
void after_exit(BlockState* b, u32 id) {
    Warp& warp = b->warps[id >> 5];
    for (WarpOp* op : warp.ops) {
        const u32 need = op->mask & warp.exists & ~warp.exited;
        if (op->arrived && (op->arrived & need) == need) complete(b, id >> 5, op, 0);
    }
    Barrier& bar = b->bars[0];
    if (bar.arrived && bar.whole && bar.arrived + b->finished == b->count) {
        if (!b->exit_reported) {
            b->exit_reported = true;
            Report r = report_here("exit_before_barrier", "a thread ended while others of its block wait at a barrier",
                                   {bar.file, bar.line});
            r.other = {};
            add_report(std::move(r));
        }
        complete_barrier(b, bar);
    }
}

// ---- stuck blocks --------------------------------------------------------------------------------------------------

std::string lanes_text(u32 lanes) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", lanes);
    return text;
}

void stuck(BlockState* b) {
    // Threads that asked for the converged lanes get them when nothing else can move.
    bool moved = false;
    for (u32 w = 0; w * 32 < b->count; ++w) {
        for (u32 lane = 0; lane < 32 && w * 32 + lane < b->count; ++lane) {
            Thread& t = b->threads[w * 32 + lane];
            if (t.wait != Wait::ACTIVE || (b->warps[w].exited >> lane & 1)) continue;
            const char* file = t.file;
            const int line = t.line;
            u32 group = 0;
            for (u32 l = lane; l < 32 && w * 32 + l < b->count; ++l) {
                Thread& o = b->threads[w * 32 + l];
                if (o.wait == Wait::ACTIVE && o.line == line && o.file == file && !(b->warps[w].exited >> l & 1))
                    group |= 1u << l;
            }
            for (u32 l = lane; l < 32; ++l) {
                if (!(group >> l & 1)) continue;
                b->threads[w * 32 + l].wait = Wait::NONE;
                b->threads[w * 32 + l].mask = group;
                make_ready(b, w * 32 + l);
                moved = true;
            }
        }
    }
    if (moved) return;

    // Nobody can move. Say who waits where.
    u32 at_barrier = MAX_THREADS, at_warp = MAX_THREADS, at_grid = MAX_THREADS;
    for (u32 id = 0; id < b->count; ++id) {
        if (b->warps[id >> 5].exited >> (id & 31) & 1) continue;
        const Wait wait = b->threads[id].wait;
        if (wait == Wait::BARRIER && at_barrier == MAX_THREADS) at_barrier = id;
        if (wait == Wait::WARP && at_warp == MAX_THREADS) at_warp = id;
        if (wait == Wait::GRID && at_grid == MAX_THREADS) at_grid = id;
    }
    Report report;
    if (at_barrier != MAX_THREADS) {
        const Thread& t = b->threads[at_barrier];
        const Barrier& bar = b->bars[t.mask];
        std::string text = "not all threads reach this barrier: " + std::to_string(bar.arrived) + " of " +
                           std::to_string(bar.whole ? b->count - b->finished : bar.expected) + " wait here";
        b->current = at_barrier;
        report = report_here("divergent_barrier", text, {t.file, t.line});
        const u32 other = at_warp != MAX_THREADS ? at_warp : at_grid;
        if (other != MAX_THREADS) {
            report.has_other = true;
            report.other = {b->threads[other].file, b->threads[other].line};
            report.other_block = blockIdx;
            report.other_thread = thread_coordinates(b, other);
        } else {
            // Two different barriers: find a thread at another one.
            for (u32 id = 0; id < b->count; ++id) {
                const Thread& o = b->threads[id];
                if (o.wait == Wait::BARRIER && !(b->warps[id >> 5].exited >> (id & 31) & 1) &&
                    (o.mask != t.mask || o.line != t.line)) {
                    report.has_other = true;
                    report.other = {o.file, o.line};
                    report.other_block = blockIdx;
                    report.other_thread = thread_coordinates(b, id);
                    break;
                }
            }
        }
    } else if (at_warp != MAX_THREADS) {
        const Thread& t = b->threads[at_warp];
        const Warp& warp = b->warps[at_warp >> 5];
        u32 arrived = 0;
        for (const WarpOp* op : warp.ops)
            if (op->mask == t.mask) arrived |= op->arrived;
        const u32 missing = t.mask & warp.exists & ~warp.exited & ~arrived;
        b->current = at_warp;
        report = report_here("missing_lanes",
                             "the warp operation's mask " + lanes_text(t.mask) + " names lanes " + lanes_text(missing) +
                                 " that never reach it",
                             {t.file, t.line});
        for (u32 lane = 0; lane < 32; ++lane) {
            const u32 id = (at_warp & ~31u) + lane;
            if (!(missing >> lane & 1) || b->threads[id].wait == Wait::NONE) continue;
            report.has_other = true;
            report.other = {b->threads[id].file, b->threads[id].line};
            report.other_block = blockIdx;
            report.other_thread = thread_coordinates(b, id);
            break;
        }
    } else {
        b->current = at_grid == MAX_THREADS ? 0 : at_grid;
        const Thread& t = b->threads[b->current];
        report =
            report_here("divergent_barrier", "not all threads of the block reach the grid barrier", {t.file, t.line});
    }
    report.fatal = true;
    add_report(std::move(report));
    abandon();
}

}  // namespace

// ---- entering and leaving a block
// ------------------------------------------------------------------------------------

void enter_block(BlockState* b) {
    block = b;
    blockIdx = b->index;
    running = b->launch;
    b->status = Status::RUNNING;
    worker->inside = true;
    Fiber* fiber;
    if (b->ready && b->next >= b->count)
        fiber = b->threads[pop_ready(b)].fiber;
    else
        fiber = take_fiber();
    go(fiber);
    worker->inside = false;
    block = nullptr;
}

// After an abandoned launch: fibres left in the middle of a thread start afresh.
void reset_fibers() {
    worker->free = nullptr;
    for (Fiber* fiber : worker->fibers) {
        reset_fiber(fiber);
        give_fiber(fiber);
    }
}

void abandon() {
    BlockState* b = here();
    b->status = Status::ABORTED;
    b->launch->aborted = true;
    worker->current = &worker->main;
    void* nowhere;
#if SIM_MODE == 1
    __sanitizer_start_switch_fiber(nullptr, worker->main.stack, worker->main.bytes);
#endif
    sim_switch(&nowhere, worker->main.sp);
    __builtin_unreachable();
}

// ---- what kernels call ---------------------------------------------------------------------------------------------

bool take_slow(Block* base) {
    BlockState* b = state_of(base);
    if ((b->ready && !b->force_start) || b->next >= b->count) return false;
    b->force_start = false;
    const u32 id = b->order[b->next++];
    b->current = id;
    b->spin = 0;
    threadIdx = thread_coordinates(b, id);
    return true;
}

void finish_slow(Block* base) {
    BlockState* b = state_of(base);
    const u32 id = b->current;
    b->warps[id >> 5].exited |= 1u << (id & 31);
    ++b->finished;
    b->spinning = 0;
    after_exit(b, id);
}

u32 warp_population() {
    const u32 first = block->current & ~31u;
    return block->count - first >= 32 ? ~0u : (1u << (block->count - first)) - 1;
}

const Slot& exchange(u32 mask, u64 value, WarpKind kind, const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    const u32 id = b->current, lane = id & 31, bit = 1u << lane;
    Warp& warp = b->warps[id >> 5];
    if (!(mask & bit)) {
        add_report(report_here("wrong_mask",
                               "the calling lane " + std::to_string(lane) + " is not in the mask " + lanes_text(mask),
                               {file, line}));
        mask |= bit;
    }
    WarpOp* op = !warp.ops.empty() && warp.ops[0]->mask == mask ? warp.ops[0] : find_op(warp, mask);
    if (op->arrived && op->kind != kind) {
        const u32 first = (id & ~31u) + static_cast<u32>(__builtin_ctz(op->arrived));
        Report report =
            report_here("divergent_warp", "lanes of one mask meet in different warp operations", {file, line});
        report.has_other = true;
        report.other = {b->threads[first].file, b->threads[first].line};
        report.other_block = blockIdx;
        report.other_thread = thread_coordinates(b, first);
        report.fatal = true;
        add_report(std::move(report));
        abandon();
    }
    op->kind = kind;
    op->arrived |= bit;
    const u32 phase = op->phase;
    Slot& slot = op->slot[phase];
    slot.value[lane] = value;
    if (value) slot.bits |= bit;
    const u32 need = mask & warp.exists & ~warp.exited;
    if ((op->arrived & need) == need) return complete(b, id >> 5, op, bit);
    wait_here(b, Wait::WARP, mask, file, line);
    return slot;
}

u32 active_lanes(const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    const u32 id = b->current;
    wait_here(b, Wait::ACTIVE, 0, file, line);
    return b->threads[id].mask;
}

BarrierResult barrier(u32 id, u32 expected, bool value, bool wait, bool whole, const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    Barrier& bar = b->bars[id & 15];
    const u32 me = b->current;
    if (!bar.arrived) {
        bar.file = file;
        bar.line = line;
        bar.first = me;
        bar.whole = whole;
        bar.expected = expected;
        if (whole && b->finished && !b->exit_reported) {
            b->exit_reported = true;
            add_report(report_here("exit_before_barrier",
                                   std::to_string(b->finished) + " thread(s) of the block ended before this barrier",
                                   {file, line}));
        }
    } else if (whole && (bar.line != line || std::strcmp(bar.file, file) != 0)) {
        Report r = report_here("divergent_barrier", "threads of one block meet in different barriers", {file, line});
        r.has_other = true;
        r.other = {bar.file, bar.line};
        r.other_block = blockIdx;
        r.other_thread = thread_coordinates(b, bar.first);
        add_report(std::move(r));
    }
    ++bar.arrived;
    bar.count += value;
    if (SIM_MODE == 2 && !whole) bar.members.push_back(static_cast<u16>(me));
    const u32 phase = bar.phase;
    const u32 need = whole ? b->count - b->finished : bar.expected;
    if (bar.arrived >= need) {
        complete_barrier(b, bar);
        return bar.result[phase];
    }
    if (!wait) return {};
    bar.waiting.push_back(static_cast<u16>(me));
    wait_here(b, Wait::BARRIER, id & 15, file, line);
    return bar.result[phase];
}

bool grid_barrier_valid() {
    return here()->launch->config.cooperative;
}

void grid_barrier(const char* file, int line) {
    BlockState* b = here();
    if (!b->launch->config.cooperative)
        fatal("grid_sync", "grid.sync() in a kernel that was not launched cooperatively", file, line);
    if (!b->waited) first_wait(b);
    ++b->grid_waiting;
    wait_here(b, Wait::GRID, 0, file, line);
}

void yield_spin() {
    BlockState* b = here();
    if (!b) return;
    if (!b->waited) first_wait(b);
    const u32 id = b->current;
    const bool alone = !b->ready && b->next >= b->count;
    make_ready(b, id);
    if (alone || ++b->spinning > 4 * b->count) {
        // Only spinners are left here: what they wait for must come from another block.
        b->spinning = 0;
        const uint3 coordinates = threadIdx;
        b->threads[id].fiber = worker->current;
        b->threads[id].wait = Wait::SPIN;
        b->status = Status::SPINNING;
        go(&worker->main);
        b->threads[id].wait = Wait::NONE;
        b->current = id;
        b->spin = 0;
        threadIdx = coordinates;
        return;
    }
    wait_here(b, Wait::SPIN, 0, nullptr, 0);
}

}  // namespace sim
