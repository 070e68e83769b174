// mbarriers and bulk copies (cp.async.bulk), of a block's own shared memory.
#pragma once

#include <sim/core.h>

namespace sim {

void mbarrier_init(void* at, u32 count, const char* file, int line);
void mbarrier_invalidate(void* at, const char* file, int line);
void mbarrier_expect(void* at, u32 bytes, const char* file, int line);
void mbarrier_complete(void* at, u32 bytes, const char* file, int line);
// Expects `bytes` more and then arrives; the state before that. `drop`: later phases expect that many arrivals fewer.
u64 mbarrier_arrive(void* at, u32 count, u32 bytes, bool drop, bool release, const char* file, int line);
// Arrives when the thread's cp.async copies so far are made; `counted`: the arrival is one of those initially expected.
void mbarrier_arrive_after_copies(void* at, bool counted, const char* file, int line);

// Whether the phase of `state`, or the last one of that parity, is complete. Waits for it as long as any thread can
// move: a test that fails is one that others had their turn before.
bool mbarrier_wait(void* at, u64 state, bool acquire, const char* file, int line);
bool mbarrier_wait_parity(void* at, u32 parity, bool acquire, const char* file, int line);

// The copies are made as late as can be: when somebody waits for them.
void bulk_load_deferred(void* target, const void* source, u32 bytes, void* mbarrier, const char* file, int line);
void bulk_store_deferred(void* target, const void* source, u32 bytes, const char* file, int line);
void bulk_prefetch(const void* source, u32 bytes, const char* file, int line);
void bulk_commit();
void bulk_wait(u32 pending_groups_allowed, bool only_read);

#if SIM_MODE == 2
void proxy_fence();
#else
inline void proxy_fence() {}
#endif

// An address that is not mapped is told at the copy's own line, not at that of the thread which waits.
SIM_INLINE void touch(const void* address, u32 bytes) {
#if SIM_MODE == 0
    const volatile char* p = static_cast<const char*>(address);
    if (bytes) (void)p[0], (void)p[bytes - 1];
#else
    (void)address, (void)bytes;
#endif
}
SIM_INLINE void bulk_load(void* target, const void* source, u32 bytes, void* mbarrier, const char* file, int line) {
    touch(source, bytes);
    bulk_load_deferred(target, source, bytes, mbarrier, file, line);
}
SIM_INLINE void bulk_store(void* target, const void* source, u32 bytes, const char* file, int line) {
    touch(target, bytes);
    bulk_store_deferred(target, source, bytes, file, line);
}

}  // namespace sim
