// Shared memory of a block: where each array lies, and the copies that are made at the wait.
#include <sim/memory.h>

#include <cstring>
#include <mutex>

#include "state.h"

namespace sim {

char* shared_window() {
    return here()->arena;
}

static std::mutex sites_lock;

// A block that began before another one of them had come to an array learns of it when it comes there itself.
void learn_sites(BlockState* b) {
    const std::lock_guard<std::mutex> hold(sites_lock);
    const std::vector<SharedSite*>& sites = b->launch->sites;
    for (; b->sites < sites.size(); ++b->sites) bounds_shared_site(b, sites[b->sites]);
}

void place_shared(SharedSite& site) {
    BlockState* b = here();
    std::unique_lock<std::mutex> hold(sites_lock);
    Launch* l = b->launch;
    if (site.generation != l->generation) {
        // A gap after each array, so that running over its end does not land in the next one.
        const u32 offset = l->statics_used.load();
        const u32 end = (offset + site.bytes + 127) / 128 * 128 + (SIM_MODE ? 128 : 0);
        if (end > DYNAMIC_AT || site.bytes > SHARED_DEFAULT)
            fatal("launch_limit", "more than 49152 bytes of static shared memory", site.file, site.line);
        l->statics_used.store(end);
        site.offset = offset;
        site.number = static_cast<u32>(l->sites.size());
        __atomic_store_n(&site.generation, l->generation, __ATOMIC_RELEASE);
        if (SIM_MODE) l->sites.push_back(&site);
    }
    if (!SIM_MODE) return;
    hold.unlock();
    // The others of a cluster may use this block's array, and this block theirs, before they have come to it
    // themselves.
    const Group* cluster = b->groups[static_cast<u32>(Wide::CLUSTER)];
    const std::vector<BlockState*> blocks = cluster ? cluster->blocks : std::vector<BlockState*>{b};
    for (BlockState* each : blocks) learn_sites(each);
}

// ---- deferred copies -----------------------------------------------------------------------------------------------

void async_copy(void* target, const void* source, u32 bytes, u32 source_bytes, const char* file, int line) {
    BlockState* b = here();
    check_aligned(target, bytes, file, line);
    check_aligned(source, source_bytes ? bytes : 1, file, line);
    if (b->async.size() != b->count) b->async.resize(b->count);
    AsyncQueue& queue = b->async[b->current];
    queue.copies.push_back({target, source, bytes, source_bytes, queue.group, __builtin_return_address(0)});
}

void async_commit() {
    BlockState* b = here();
    if (b->async.size() == b->count) ++b->async[b->current].group;
}

void async_wait(u32 allowed) {
    BlockState* b = here();
    if (b->async.size() != b->count) return;
    AsyncQueue& queue = b->async[b->current];
    auto pending = queue.copies.begin();
    for (; pending != queue.copies.end(); ++pending) {
        if (pending->group + allowed >= queue.group && allowed != ~0u) break;
#if SIM_MODE == 2
        if (pending->source_bytes) announce(pending->source, pending->source_bytes, READ, pending->pc);
        announce(pending->target, pending->bytes, WRITE, pending->pc);
#endif
        std::memcpy(pending->target, pending->source, pending->source_bytes);
        std::memset(static_cast<char*>(pending->target) + pending->source_bytes, 0,
                    pending->bytes - pending->source_bytes);
    }
    queue.copies.erase(queue.copies.begin(), pending);
    if (!b->mbarriers.empty()) make_tracked_copies_of(b, b->current);
}

}  // namespace sim
