// A block in which nobody can move: what its threads wait for, told as a finding.
#include <algorithm>
#include <cstdio>

#include "state.h"

namespace sim {

namespace {

std::string lanes_text(u32 lanes) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", lanes);
    return text;
}

std::string why_incomplete(const MBarrier& bar) {
    std::string text =
        "this wait for a phase of parity " + std::to_string(bar.phase & 1) + " of an mbarrier never ends: ";
    if (bar.pending)
        text += std::to_string(bar.pending) + " of " + std::to_string(bar.expected) + " arrivals are missing";
    if (bar.bytes > 0) {
        if (bar.pending) text += ", and ";
        text += std::to_string(bar.bytes) + " bytes are expected that no copy brings";
    }
    if (bar.bytes < 0) {
        if (bar.pending) text += ", and ";
        text += "copies brought " + std::to_string(-bar.bytes) + " bytes more than were expected";
    }
    return text;
}

}  // namespace

// Threads that asked for the converged lanes get those that wait with them at one place, once nothing else can move.
bool release_converged(BlockState* b) {
    if (!b->asking) return false;
    b->asking = 0;
    for (u32 id = 0; id < b->count; ++id) {
        const Thread& t = b->threads[id];
        if (t.wait != Wait::ACTIVE || has_ended(b, id)) continue;
        const u32 first = id & ~31u;
        u32 group = 0;
        for (u32 o = id; o < first + 32 && o < b->count; ++o) {
            const Thread& other = b->threads[o];
            if (other.wait == Wait::ACTIVE && other.line == t.line && other.file == t.file && !has_ended(b, o))
                group |= 1u << (o & 31);
        }
        for (u32 left = group; left; left &= left - 1) {
            Thread& each = b->threads[first + static_cast<u32>(__builtin_ctz(left))];
            each.wait = Wait::NONE;
            each.mask = group;
        }
        make_ready(b, id >> 5, group);
    }
    return true;
}

void stuck(BlockState* b) {
    u32 at_barrier = MAX_THREADS, at_warp = MAX_THREADS, at_wide = MAX_THREADS, at_mbarrier = MAX_THREADS;
    for (u32 id = 0; id < b->count; ++id) {
        if (has_ended(b, id)) continue;
        const Wait wait = b->threads[id].wait;
        if (wait == Wait::BARRIER && at_barrier == MAX_THREADS) at_barrier = id;
        if (wait == Wait::WARP && at_warp == MAX_THREADS) at_warp = id;
        if (wait == Wait::MBARRIER && at_mbarrier == MAX_THREADS) at_mbarrier = id;
        if ((wait == Wait::GRID || wait == Wait::CLUSTER) && at_wide == MAX_THREADS) at_wide = id;
    }
    Report report;
    if (at_mbarrier != MAX_THREADS) {
        // The others wait for these threads, or these for the others: both are shown.
        const Thread& t = b->threads[at_mbarrier];
        const MBarrier& bar = b->mbarriers[t.mask & MBARRIER_NUMBER];
        b->current = at_mbarrier;
        report = report_here("incomplete_mbarrier", why_incomplete(bar), {t.file, t.line});
        const u32 other = std::min(std::min(at_barrier, at_warp), at_wide);
        report.has_other = true;
        report.other_block = blockIdx;
        report.other_thread = thread_coordinates(b, other != MAX_THREADS ? other : bar.thread);
        report.other = {bar.file, bar.line};
        if (other != MAX_THREADS) report.other = {b->threads[other].file, b->threads[other].line};
    } else if (at_barrier != MAX_THREADS) {
        const Thread& t = b->threads[at_barrier];
        const Barrier& bar = b->barriers[t.mask];
        std::string text = "not all threads reach this barrier: " + std::to_string(bar.arrived) + " of " +
                           std::to_string(bar.need) + " wait here";
        b->current = at_barrier;
        report = report_here("divergent_barrier", text, {t.file, t.line});
        const u32 other = at_warp != MAX_THREADS ? at_warp : at_wide;
        if (other != MAX_THREADS) {
            report.has_other = true;
            report.other = {b->threads[other].file, b->threads[other].line};
            report.other_block = blockIdx;
            report.other_thread = thread_coordinates(b, other);
        } else {
            // Two different barriers: find a thread at another one.
            for (u32 id = 0; id < b->count; ++id) {
                const Thread& o = b->threads[id];
                if (o.wait == Wait::BARRIER && !has_ended(b, id) && (o.mask != t.mask || o.line != t.line)) {
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
        for (const WarpOp* op : b->ops[at_warp >> 5])
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
        b->current = at_wide == MAX_THREADS ? 0 : at_wide;
        const Thread& t = b->threads[b->current];
        const bool cluster = t.wait == Wait::CLUSTER;
        report = report_here(
            "divergent_barrier",
            std::string("not all threads of the ") + (cluster ? "cluster reach its" : "grid reach its") + " barrier",
            {t.file, t.line});
    }
    report.fatal = true;
    add_report(std::move(report));
    abandon();
}

}  // namespace sim
