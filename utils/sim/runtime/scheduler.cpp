// One block: its threads over fibres, and which of them goes on next.
//
// A fibre runs the block's loop: start a thread, run it to its end, start the next. A thread that must wait parks its
// fibre; the loop goes on, on another one, with a thread that may go on or else the next unstarted one. When neither is
// left the block is done, waits for other blocks, spins, or is stuck; a stuck block is a finding, never a hang.
//
// Who may go on is a bit per lane. In the ascending order a warp keeps going as long as any of its lanes can: what its
// lanes work on stays in the cache, and the next lane is found by counting zeros (warp.h does it in line).
#include <algorithm>

#include "state.h"

#if SIM_MODE == 1
extern "C" void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size);
#endif

__thread uint3 threadIdx SIM_TLS = {0, 0, 0};
__thread uint3 blockIdx SIM_TLS = {0, 0, 0};
__thread dim3 blockDim SIM_TLS(1, 1, 1);
__thread dim3 gridDim SIM_TLS(1, 1, 1);

namespace sim {

__thread Block* block SIM_TLS = nullptr;

namespace {

__thread Launch* running SIM_TLS = nullptr;

// Waits completed by one warp before the others get a turn: a warp that only polls, with barriers of its own, would
// otherwise keep those it waits for from running.
constexpr u32 LONGEST_STREAK = 64;

// How often threads that wait for mbarriers may look in vain, while nobody else can move, before they count as stuck.
constexpr u32 MOST_POLLS = 16;
// A thread that yields this often after such a look waits for something else: __nanosleep in a loop comes once a look.
constexpr u32 MOST_YIELDS = 4;

// Takes a ready lane, or returns false.
bool pop_ready(BlockState* b, u32& id) {
    while (b->ready_warps) {
        u32 w;
        if (settings.order == Order::ASCENDING) {
            // This warp, or the next one in turn.
            const u32 here = b->current >> 5, from_here = b->ready_warps >> here;
            w = from_here ? here + static_cast<u32>(__builtin_ctz(from_here))
                          : static_cast<u32>(__builtin_ctz(b->ready_warps));
        } else if (settings.order == Order::REVERSE) {
            w = 31u - static_cast<u32>(__builtin_clz(b->ready_warps));
        } else {
            u32 left = b->ready_warps;
            for (u32 skip = random_below(b, static_cast<u32>(__builtin_popcount(left))); skip; --skip) left &= left - 1;
            w = static_cast<u32>(__builtin_ctz(left));
        }
        u32& ready = b->warps[w].ready;
        if (!ready) {
            b->ready_warps &= ~(1u << w);
            continue;
        }
        u32 lane = static_cast<u32>(__builtin_ctz(ready));
        if (settings.order == Order::REVERSE) lane = 31u - static_cast<u32>(__builtin_clz(ready));
        if (settings.order == Order::RANDOM) {
            u32 left = ready;
            for (u32 skip = random_below(b, static_cast<u32>(__builtin_popcount(left))); skip; --skip) left &= left - 1;
            lane = static_cast<u32>(__builtin_ctz(left));
        }
        ready &= ~(1u << lane);
        id = w * 32 + lane;
        return true;
    }
    return false;
}

bool any_ready(BlockState* b) {
    for (u32 left = b->ready_warps; left; left &= left - 1)
        if (b->warps[__builtin_ctz(left)].ready) return true;
    b->ready_warps = 0;
    return false;
}

void wake_spinners(BlockState* b) {
    for (u32 left = b->later_warps; left; left &= left - 1) {
        const u32 w = static_cast<u32>(__builtin_ctz(left));
        make_ready(b, w, b->warps[w].later);
        b->warps[w].later = 0;
    }
    b->later_warps = 0;
}

// What this OS thread does next. The caller's fibre is either parked in a wait or free.
Context* next_context(BlockState* b) {
    for (;;) {
        b->force_start = b->next < b->count && b->ready_warps &&
                         (b->force_start || (settings.order == Order::RANDOM && random_below(b, 2)));
        u32 id;
        if (!b->force_start && pop_ready(b, id)) return &b->threads[id].context;
        if (b->next < b->count) return &take_fiber()->context;
        const bool in_vain = !b->mbarriers.empty() && ++b->polls > MOST_POLLS && only_mbarrier_waiters(b);
        if (b->later_warps && !in_vain) {
            wake_spinners(b);
            continue;
        }
        if (release_converged(b)) continue;
        if (!b->waited || b->finished == b->count) {
            finish_copies(b);
            b->status = Status::DONE;
            return &worker->main.context;
        }
        if (b->wide_waiting) {
            b->status = Status::WAITING;
            return &worker->main.context;
        }
        stuck(b);
    }
}

}  // namespace

void run_thread_to_its_end() {
    running->kernel.threads(running->kernel.closure, block);
    Fiber* fiber = fiber_here();
    give_fiber(fiber);
    Context* to = next_context(here());
    if (to != &fiber->context) go(&fiber->context, to);
}

// ---- waiting -------------------------------------------------------------------------------------------------------

void first_wait(BlockState* b) {
    b->waited = 1;
    for (u32 w = 0; w < warp_count(b); ++w)
        b->warps[w].exists = b->count - w * 32 >= 32 ? ~0u : (1u << (b->count - w * 32)) - 1;
    // Everyone who started before the current thread has ended without waiting.
    b->finished = b->next ? b->next - 1 : 0;
    for (u32 i = 0; i + 1 < b->next; ++i) {
        const u32 id = b->slow ? b->order[i] : i;
        b->warps[id >> 5].exited |= 1u << (id & 31);
    }
}

// Makes a block in which threads waited as good as new.
void forget_waits(BlockState* b) {
    b->waited = 0;
    for (Warp& warp : b->warps) warp = Warp{};
    for (auto& ops : b->ops)
        for (WarpOp* op : ops) op->mask = op->arrived = 0;
    for (Barrier& bar : b->barriers)
        if (bar.file || bar.arrived) bar = Barrier{};
    for (auto& wide : b->wide) wide.fill(WideLanes{});
}

void wait_here(BlockState* b, Wait kind, u32 mask, const char* file, int line) {
    const u32 id = b->current;
    const uint3 coordinates = threadIdx;
    Thread& me = b->threads[id];
    me.wait = kind;
    me.mask = mask;
    me.file = file;
    me.line = line;
    Context* to = next_context(b);
    if (to != &me.context) go(&me.context, to);
    b->current = id;
    b->spin = 0;
    threadIdx = coordinates;
}

// Called where a wait is complete: after many of them the others get a turn.
void let_others_run(BlockState* b) {
    b->spinning = 0;
    if (++b->streak < LONGEST_STREAK) return;
    b->streak = 0;
    const u32 id = b->current;
    b->force_start = true;
    b->current = (id | 31) + 1 < b->count ? (id | 31) + 1 : 0;  // the turn passes to the next warp
    make_ready(b, id >> 5, 1u << (id & 31));
    const uint3 coordinates = threadIdx;
    Context* to = next_context(b);
    if (to != &b->threads[id].context) go(&b->threads[id].context, to);
    b->current = id;
    b->spin = 0;
    threadIdx = coordinates;
}

void yield_spin() {
    BlockState* b = here();
    if (!b) return;
    if (!b->waited) first_wait(b);
    const u32 id = b->current;
    const bool alone = !b->later_warps && b->next >= b->count && !any_ready(b);
    b->warps[id >> 5].later |= 1u << (id & 31);
    b->later_warps |= 1u << (id >> 5);
    Thread& me = b->threads[id];
    if (me.wait == Wait::MBARRIER && me.yields < MOST_YIELDS) {
        ++me.yields;
        wait_here(b, Wait::MBARRIER, me.mask, me.file, me.line);
        return;
    }
    if (!alone && ++b->spinning <= 4 * b->count) {
        wait_here(b, Wait::SPIN, 0, nullptr, 0);
        return;
    }
    // Only spinners are left here: what they wait for must come from another block.
    b->spinning = 0;
    b->status = Status::SPINNING;
    const uint3 coordinates = threadIdx;
    b->threads[id].wait = Wait::SPIN;
    go(&b->threads[id].context, &worker->main.context);
    b->current = id;
    b->spin = 0;
    threadIdx = coordinates;
}

// ---- entering and leaving a block ----------------------------------------------------------------------------------

void enter_block(BlockState* b) {
    block = b;
    blockIdx = b->index;
    running = b->launch;
    b->status = Status::RUNNING;
    b->polls = 0;
    worker->inside = true;
    // Where no thread can go on, a fresh fibre finds out what is the matter: a stuck block is abandoned from its own.
    u32 id;
    const bool resumes = b->next >= b->count && pop_ready(b, id);
    go(&worker->main.context, resumes ? &b->threads[id].context : &take_fiber()->context);
    worker->inside = false;
    block = nullptr;
}

void abandon() {
    BlockState* b = here();
    b->status = Status::ABORTED;
    b->launch->aborted = true;
    Context nowhere;
#if SIM_MODE == 1
    __sanitizer_start_switch_fiber(nullptr, worker->main.stack, worker->main_bytes);
#endif
    switch_context(&nowhere, &worker->main.context);
    __builtin_unreachable();
}

// ---- what the loop in core.h calls ---------------------------------------------------------------------------------

bool take_slow(Block* base) {
    BlockState* b = state_of(base);
    if (b->next >= b->count || (!b->force_start && any_ready(b))) return false;
    b->force_start = false;
    const u32 id = b->slow ? b->order[b->next] : b->next;
    ++b->next;
    b->current = id;
    b->spin = 0;
    threadIdx = thread_coordinates(b, id);
    if (!b->slow && b->next < b->count) b->upcoming = thread_coordinates(b, b->next);
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

}  // namespace sim
