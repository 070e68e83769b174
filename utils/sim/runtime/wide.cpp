// Barriers over the blocks of a cluster or of a cooperative grid, and where a cluster's shared memory lies.
#include "state.h"

namespace sim {

namespace {

void complete(Group& group, u32 which) {
    if (group.barrier.ordering) race_join_wide(group, static_cast<Wide>(which));
    for (BlockState* b : group.blocks) {
        for (u32 w = 0; w < warp_count(b); ++w) {
            WideLanes& lanes = b->wide[which][w];
            if (lanes.waiting) {
                make_ready(b, w, lanes.waiting);
                b->wide_waiting -= static_cast<u32>(__builtin_popcount(lanes.waiting));
            }
            lanes.arrived = lanes.waiting = 0;
        }
        b->spinning = 0;
    }
    group.barrier.arrived = 0;
    group.barrier.ordering = true;
}

}  // namespace

bool grid_barrier_valid() {
    return here()->groups[static_cast<u32>(Wide::GRID)] != nullptr;
}

void wide_arrive(Wide which, bool ordering, const char* file, int line) {
    BlockState* b = here();
    const u32 k = static_cast<u32>(which), w = b->current >> 5, bit = 1u << (b->current & 31);
    Group* group = b->groups[k];
    if (!group) {
        // A launch without clusters is one of clusters of one block: its barrier is the block's.
        if (which == Wide::CLUSTER) return;
        fatal("grid_sync", "grid.sync() in a kernel that was not launched cooperatively", file, line);
    }
    WideLanes& lanes = b->wide[k][w];
    if (lanes.owed & bit)
        fatal("divergent_barrier", "a thread arrives twice at the cluster's barrier without waiting in between", file,
              line);
    lanes.owed |= bit;
    lanes.arrived |= bit;
    group->barrier.ordering &= ordering;
    if (++group->barrier.arrived == group->barrier.alive) complete(*group, k);
}

void wide_wait(Wide which, const char* file, int line) {
    BlockState* b = here();
    const u32 k = static_cast<u32>(which), w = b->current >> 5, bit = 1u << (b->current & 31);
    if (!b->groups[k]) {
        barrier_slow(0, 0, false, true, true, file, line);
        return;
    }
    WideLanes& lanes = b->wide[k][w];
    if (!(lanes.owed & bit))
        fatal("divergent_barrier", "a thread waits at the cluster's barrier without having arrived", file, line);
    lanes.owed &= ~bit;
    if (!(lanes.arrived & bit)) return;  // complete already
    lanes.waiting |= bit;
    ++b->wide_waiting;
    wait_here(b, which == Wide::CLUSTER ? Wait::CLUSTER : Wait::GRID, 0, file, line);
}

// A thread that has ended is waited for no more.
void after_exit_wide(BlockState* b) {
    for (u32 k = 0; k < 2; ++k) {
        Group* group = b->groups[k];
        if (!group) continue;
        const u32 w = b->current >> 5, bit = 1u << (b->current & 31);
        WideBarrier& barrier = group->barrier;
        --barrier.alive;
        if (b->wide[k][w].arrived & bit) --barrier.arrived;
        if (barrier.arrived && barrier.arrived == barrier.alive) complete(*group, k);
    }
}

// ---- the cluster ---------------------------------------------------------------------------------------------------

namespace {

// Distributed shared memory has 32-bit addresses too: a block's own are offsets into its window, as without clusters,
// and those of rank r lie r + 1 of these further on.
constexpr u32 CLUSTER_WINDOW = 1u << 24;
static_assert(ARENA_BYTES <= CLUSTER_WINDOW);

const Group* cluster_of(const BlockState* b) {
    return b->groups[static_cast<u32>(Wide::CLUSTER)];
}

char* window_of(u32 rank, const char* file, int line) {
    BlockState* b = here();
    const Group* group = cluster_of(b);
    if (!group && rank == 0) return b->arena;
    if (!group || rank >= group->blocks.size())
        fatal("illegal_access",
              ("the cluster has no block of rank " + std::to_string(rank) + ": it has " +
               std::to_string(group ? group->blocks.size() : 1))
                  .c_str(),
              file, line);
    return group->blocks[rank]->arena;
}

}  // namespace

u32 cluster_rank() {
    return here()->cluster_rank;
}

uint3 cluster_place() {
    const dim3 c = cluster_shape();
    return uint3{blockIdx.x % c.x, blockIdx.y % c.y, blockIdx.z % c.z};
}

dim3 cluster_shape() {
    return here()->launch->config.cluster;
}

char* map_shared(const void* shared, u32 rank, const char* file, int line) {
    const size_t offset = static_cast<size_t>(static_cast<const char*>(shared) - here()->arena);
    if (offset >= ARENA_BYTES)
        fatal("illegal_access", "the pointer to map to another block is not to this block's shared memory", file, line);
    return window_of(rank, file, line) + offset;
}

u32 map_shared_address(u32 address, u32 rank, const char* file, int line) {
    window_of(rank, file, line);
    return (rank + 1) * CLUSTER_WINDOW + address;
}

char* cluster_pointer(u64 address, const char* file, int line) {
    if (address < CLUSTER_WINDOW) return here()->arena + address;
    if (address >> 32) return reinterpret_cast<char*>(address);
    return window_of(static_cast<u32>(address / CLUSTER_WINDOW) - 1, file, line) + address % CLUSTER_WINDOW;
}

BlockState* owner_of_shared(BlockState* b, const void* address) {
    auto holds = [&](const BlockState* each) {
        return static_cast<size_t>(static_cast<const char*>(address) - each->arena) < ARENA_BYTES;
    };
    if (holds(b)) return b;
    if (const Group* group = cluster_of(b))
        for (BlockState* each : group->blocks)
            if (holds(each)) return each;
    return nullptr;
}

u32 shared_rank(const void* address) {
    const BlockState* owner = owner_of_shared(here(), address);
    return owner ? owner->cluster_rank : ~0u;
}

void kernel_cluster(u32 x, u32 y, u32 z, const char* file, int line) {
    Launch* l = here()->launch;
    const dim3 now = l->config.cluster;
    if (now.x == x && now.y == y && now.z == z) return;
    if (l->cluster > 1) fatal("launch_limit", "the launch's cluster is not the kernel's __cluster_dims__", file, line);
    // Nothing of the kernel has run yet, in any block: this comes first in all of them. The launch begins again.
    l->wanted_cluster = dim3(x, y, z);
    l->restart = true;
    abandon();
}

}  // namespace sim
