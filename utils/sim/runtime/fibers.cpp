// Stacks for simulated threads. Each is aligned to its size, so that whose stack an address is in is found by masking.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "state.h"

#if SIM_MODE == 1
#include <sanitizer/asan_interface.h>
extern "C" void __sanitizer_start_switch_fiber(void** save, const void* bottom, size_t size);
extern "C" void __sanitizer_finish_switch_fiber(void* save, const void** bottom, size_t* size);
#endif

namespace sim {

__thread Worker* worker SIM_TLS = nullptr;

namespace {

constexpr u32 GUARDED_FIBERS = 4096;  // each guard page costs a mapping, of which a process has some 65,000
constexpr size_t STACKS_AT_ONCE = 32;
constexpr size_t TOP = 128;  // what a Fiber takes at the top of its stack

static_assert(sizeof(Fiber) <= TOP);

void fiber_entry() {
#if SIM_MODE == 1
    __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    for (;;) run_thread_to_its_end();
}

void reset_fiber(Fiber* fiber, u32 number) {
    const size_t bytes = settings.stack;
#if SIM_MODE == 1
    __asan_unpoison_memory_region(fiber->stack + 4096, bytes - 4096);
#endif
    // Tops at different distances from a page boundary, or all live frames would share the same few cache sets.
    const size_t colour = (number * 832u) % 16384u & ~size_t(63);
    prepare_context(&fiber->context, fiber->stack + bytes - TOP - colour, fiber_entry);
}

// The stacks of a warp's threads lie side by side.
void make_fibers() {
    Worker& w = *worker;
    const size_t bytes = settings.stack, room = bytes * (STACKS_AT_ONCE + 1);
    void* memory = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        std::fprintf(stderr, "simulator: no memory for the stacks of simulated threads\n");
        std::abort();
    }
    char* first = reinterpret_cast<char*>((reinterpret_cast<size_t>(memory) + bytes - 1) & ~(bytes - 1));
    for (size_t i = STACKS_AT_ONCE; i-- > 0;) {
        char* stack = first + i * bytes;
        auto* fiber = new (stack + bytes - TOP) Fiber;
        fiber->stack = stack;
        const u32 number = static_cast<u32>(w.fibers.size());
        if (number < GUARDED_FIBERS) mprotect(stack, 4096, PROT_NONE);
        w.fibers.push_back(fiber);
        reset_fiber(fiber, number);
        give_fiber(fiber);
    }
}

inline Fiber* fiber_of(const void* address) {
    const size_t bytes = settings.stack;
    return reinterpret_cast<Fiber*>((reinterpret_cast<size_t>(address) | (bytes - 1)) + 1 - TOP);
}

}  // namespace

Fiber* take_fiber() {
    Worker& w = *worker;
    if (!w.free) make_fibers();
    Fiber* fiber = w.free;
    w.free = fiber->next_free;
    return fiber;
}

void give_fiber(Fiber* fiber) {
    fiber->next_free = worker->free;
    worker->free = fiber;
}

Fiber* fiber_here() {
    return fiber_of(__builtin_frame_address(0));
}

// After an abandoned launch: fibres left in the middle of a thread start afresh.
void reset_fibers() {
    worker->free = nullptr;
    u32 number = 0;
    for (Fiber* fiber : worker->fibers) {
        reset_fiber(fiber, number++);
        give_fiber(fiber);
    }
}

void go(Context* from, Context* to) {
#if SIM_MODE == 1
    Worker& w = *worker;
    Fiber* left = from == &w.main.context ? &w.main : fiber_of(__builtin_frame_address(0));
    Fiber* entered = to == &w.main.context ? &w.main : fiber_of(to->sp);
    __sanitizer_start_switch_fiber(&left->fake_stack, entered->stack,
                                   entered == &w.main ? w.main_bytes : settings.stack);
#endif
    switch_context(from, to);
#if SIM_MODE == 1
    __sanitizer_finish_switch_fiber(left->fake_stack, nullptr, nullptr);
#endif
}

}  // namespace sim
