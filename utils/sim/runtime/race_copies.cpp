// What asynchronous copies and mbarriers order, for race mode: who knows which copies to be made, and what an mbarrier
// hands from those that arrive to those that wait.
#include "race.h"

#include <algorithm>

#if SIM_MODE == 2

namespace sim {

namespace {

void raise(std::vector<u32>& known, const std::vector<u32>& by) {
    if (known.size() < by.size()) known.resize(by.size());
    for (size_t i = 0; i < by.size(); ++i) known[i] = std::max(known[i], by[i]);
}

void raise(std::vector<u32>& known, size_t at, u32 clock) {
    if (known.size() <= at) known.resize(at + 1);
    known[at] = std::max(known[at], clock);
}

}  // namespace

// A new line of copies.
u32 race_copier(BlockState* b) {
    b->race->copy_clock.push_back(0);
    return static_cast<u32>(b->race->copy_clock.size() - 1);
}

u32 race_next_copy(BlockState* b, u32 copier) {
    return ++b->race->copy_clock[copier];
}

void race_copy_known(BlockState* b, u32 id, u32 copier, u32 clock) {
    raise(b->race->copies[id], copier, clock);
}

void race_copy_joins(Clocks& clocks, u32 copier, u32 clock) {
    raise(clocks.copies, copier, clock);
}

// What thread `id` did and knows so far becomes part of `clocks`.
void race_publish(BlockState* b, u32 id, Clocks& clocks) {
    RaceBlock& s = *b->race;
    std::vector<u32>& all = clocks.threads;
    all.resize((s.clock.size() + 31) / 32 * 32);
    const u32 first = id & ~31u;
    for (u32 lane = 0; lane < 32; ++lane) all[first + lane] = std::max(all[first + lane], s.know[id * 32 + lane]);
    all[id] = std::max(all[id], s.clock[id]);
    if (!s.far.empty()) raise(all, s.far[id]);
    raise(clocks.copies, s.copies[id]);
    ++s.clock[id];
}

// Thread `id` comes after all that `clocks` tells of.
void race_learn(BlockState* b, u32 id, const Clocks& clocks) {
    RaceBlock& s = *b->race;
    raise(s.copies[id], clocks.copies);
    if (clocks.threads.empty()) return;
    if (s.far.empty()) s.far.resize(s.clock.size());
    raise(s.far[id], clocks.threads);
    const u32 first = id & ~31u;
    for (u32 lane = 0; lane < 32; ++lane) {
        u32& known = s.know[id * 32 + lane];
        known = std::max(known, clocks.threads[first + lane]);
    }
}

void join_copies(RaceBlock& s, const u32 (&members)[32]) {
    if (s.copy_clock.empty()) return;
    std::vector<u32> joined;
    for (const bool hand_out : {false, true})
        for (u32 w = 0; w < 32; ++w)
            for (u32 left = members[w]; left; left &= left - 1) {
                std::vector<u32>& known = s.copies[w * 32 + static_cast<u32>(__builtin_ctz(left))];
                if (hand_out)
                    known = joined;
                else
                    raise(joined, known);
            }
}

void join_copies_of_all(BlockState* b) {
    RaceBlock& s = *b->race;
    if (s.copy_clock.empty()) return;
    std::vector<u32> joined;
    for (const std::vector<u32>& known : s.copies) raise(joined, known);
    for (std::vector<u32>& known : s.copies) known = joined;
}

}  // namespace sim

#endif
