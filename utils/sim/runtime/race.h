// What race mode keeps about who accessed what, and what each thread knows to be before it.
#pragma once

#include <unordered_map>
#include <vector>

#include "shadow.h"

namespace sim {

// Copies are made by nobody's thread: each mbarrier has a line of them, and each thread that issues copies out of
// shared memory two, one that reads and one that writes. A line is told by its number, a copy by its clock in the line.
constexpr u8 COPIER = 255;  // in place of a warp

struct Record {
    u32 block, epoch, lanes, clock, wide, release,
        next;  // of a copy: the thread that issued it for epoch, its line for lanes
    const void* pc;
    u8 warp, kind, bytes, size;  // bytes: of these 4; size: of the whole access
};

struct Cell {
    u32 stamp, head;
};

struct Pool {
    std::vector<Record> records;
    u32 free = 0;
    Pool() { clear(); }
    void clear() {
        records.clear();
        records.push_back({});  // index 0 is the end of a list
        free = 0;
    }
    u32 take() {
        if (free) {
            const u32 index = free;
            free = records[index].next;
            return index;
        }
        records.push_back({});
        return static_cast<u32>(records.size() - 1);
    }
    void give(u32 index) {
        records[index].next = free;
        free = index;
    }
};

struct Copy {
    u32 copier, clock;
};

struct Visit {
    u32 release, thread;
    const void* pc;
};

struct RaceBlock {
    u32 stamp = 0, linear = 0, epoch = 1, release = 0;
    u32 wide = 0;                        // barriers of its cluster so far
    std::vector<u32> clock;              // per thread
    std::vector<u32> know;               // per thread: 32 lanes of its warp
    std::vector<std::vector<u32> > far;  // per thread, empty unless barriers of some threads are used
    std::vector<u8> fenced;              // per thread
    std::unordered_map<u32, u32> known;  // per other block: its releases that this one has seen
    Pool pool;                           // records of its shared memory
    std::vector<u32> copy_clock;         // per line of copies: how many were issued
    std::vector<std::vector<u32> >
        copies;  // per thread, empty unless it waited: per line, how many it knows to be made
    std::unordered_map<u32, Visit> visits;  // per other block: the last access it made to this one's shared memory
};

// ---- race_copies.cpp
void join_copies(RaceBlock& s, const u32 (&members)[32]);
void join_copies_of_all(BlockState* b);  // of the block

// ---- race.cpp
const void* last_write(const BlockState* owner, const char* p);

}  // namespace sim
