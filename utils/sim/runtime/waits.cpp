// Warp operations and barriers of a block: who has come, and who goes on when all have.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "state.h"

namespace sim {

namespace {

// ---- warp operations -----------------------------------------------------------------------------------------------

WarpOp* find_op(std::vector<WarpOp*>& ops, u32 mask) {
    WarpOp* spare = nullptr;
    for (WarpOp* op : ops) {
        if (op->mask == mask) return op;
        if (!op->arrived && !spare) spare = op;
    }
    // An op of another mask may be reused once its readers have gone: with a few kept, they have.
    if (!spare || ops.size() < 8) {
        spare = new WarpOp;
        ops.push_back(spare);
    } else {
        std::rotate(ops.begin(), std::find(ops.begin(), ops.end(), spare) + 1, ops.end());
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
    if (op->kind == WarpKind::SYNC) race_join_warp(b, warp, op->arrived);
    make_ready(b, warp, op->arrived & ~self);
    op->arrived = 0;
    op->phase ^= 1;
    op->slot[op->phase].bits = 0;
    return slot;
}

[[noreturn]] void divergent(BlockState* b, const WarpOp* op, const char* file, int line) {
    const u32 first = (b->current & ~31u) + static_cast<u32>(__builtin_ctz(op->arrived));
    Report report = report_here("divergent_warp", "lanes of one mask meet in different warp operations", {file, line});
    report.has_other = true;
    report.other = {b->threads[first].file, b->threads[first].line};
    report.other_block = blockIdx;
    report.other_thread = thread_coordinates(b, first);
    report.fatal = true;
    add_report(std::move(report));
    abandon();
}

// ---- barriers of a block -------------------------------------------------------------------------------------------

void complete(BlockState* b, Barrier& bar) {
    BarrierResult& result = bar.result[bar.phase];
    result.count = bar.count;
    result.any = bar.count != 0;
    result.all = bar.count == bar.arrived;
    if (bar.whole)
        race_join_block(b);
    else
        race_join_some(b, bar.members);
    for (u32 w = 0; w < warp_count(b); ++w) {
        if (bar.waiting[w]) make_ready(b, w, bar.waiting[w]);
        bar.waiting[w] = bar.members[w] = 0;
    }
    bar.arrived = bar.count = 0;
    bar.phase ^= 1;
    bar.file = nullptr;
}

}  // namespace

const Slot& exchange_slow(u32 mask, u64 value, WarpKind kind, const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    const u32 id = b->current, w = id >> 5, lane = id & 31, bit = 1u << lane;
    Warp& warp = b->warps[w];
    if (!(mask & bit)) {
        char text[100];
        std::snprintf(text, sizeof text, "the calling lane %u is not in the mask 0x%08x", lane, mask);
        add_report(report_here("wrong_mask", text, {file, line}));
        mask |= bit;
    }
    WarpOp* op = warp.op && warp.op->mask == mask ? warp.op : find_op(b->ops[w], mask);
    // In other orders than the ascending one no wait is made in line.
    if (!b->slow) warp.op = op;
    if (!op->arrived) op->need = mask & warp.exists & ~warp.exited;
    if (op->arrived && op->kind != kind) divergent(b, op, file, line);
    op->kind = kind;
    op->arrived |= bit;
    Slot& slot = op->slot[op->phase];
    slot.value[lane] = value;
    if (value) slot.bits |= bit;
    if ((op->need & ~op->arrived) == 0) {
        complete(b, w, op, bit);
        let_others_run(b);
    } else {
        wait_here(b, Wait::WARP, mask, file, line);
    }
    return slot;
}

u32 warp_population() {
    const u32 first = block->current & ~31u;
    return block->count - first >= 32 ? ~0u : (1u << (block->count - first)) - 1;
}

u32 active_lanes(const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    const u32 id = b->current;
    ++b->asking;
    wait_here(b, Wait::ACTIVE, 0, file, line);
    return b->threads[id].mask;
}

const BarrierResult& barrier_slow(u32 id, u32 expected, bool value, bool wait, bool whole, const char* file, int line) {
    BlockState* b = here();
    if (!b->waited) first_wait(b);
    Barrier& bar = b->barriers[id & 15];
    const u32 me = b->current;
    if (!bar.arrived) {
        bar.file = file;
        bar.line = line;
        bar.first = me;
        bar.whole = whole;
        bar.need = whole ? b->count - b->finished : expected;
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
    const u32 bit = 1u << (me & 31);
    ++bar.arrived;
    bar.count += value;
    bar.members[me >> 5] |= bit;
    const BarrierResult& result = bar.result[bar.phase];
    if (bar.arrived >= bar.need) {
        complete(b, bar);
        let_others_run(b);
    } else if (wait) {
        bar.waiting[me >> 5] |= bit;
        wait_here(b, Wait::BARRIER, id & 15, file, line);
    }
    return result;
}

// Some thread has ended: what waited for it may be complete now.
void after_exit(BlockState* b, u32 id) {
    const u32 w = id >> 5, bit = 1u << (id & 31);
    for (WarpOp* op : b->ops[w]) {
        if (!op->arrived || !(op->need & bit)) continue;
        op->need &= ~bit;
        if ((op->need & ~op->arrived) == 0) complete(b, w, op, 0);
    }
    Barrier& bar = b->barriers[0];
    if (bar.arrived && bar.whole && --bar.need == bar.arrived) {
        if (!b->exit_reported) {
            b->exit_reported = true;
            add_report(report_here("exit_before_barrier", "a thread ended while others of its block wait at a barrier",
                                   {bar.file, bar.line}));
        }
        complete(b, bar);
    }
    if (b->groups[0] || b->groups[1]) after_exit_wide(b);
}

}  // namespace sim
