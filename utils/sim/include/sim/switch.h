// Going from one stack to another: a few instructions on x86-64, ucontext elsewhere.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>

#include <new>
#endif

namespace sim {

#if defined(__x86_64__)

// Where a stack was left.
struct Context {
    void *sp = nullptr, *bp = nullptr, *ip = nullptr;
};

// Leaves this stack, noted in `from`, for the one that left itself in `to`. Every register counts as lost, so only what
// the caller still needs is saved, by the compiler. Inlined, each place that waits has a jump of its own, which the
// processor predicts: the next lane nearly always waits where the last one waited.
inline __attribute__((always_inline)) void switch_context(Context* from, Context* to) {
    asm volatile(
        "movq %%rsp, 0(%0)\n\t"
        "movq %%rbp, 8(%0)\n\t"
        "leaq 1f(%%rip), %%rcx\n\t"
        "movq %%rcx, 16(%0)\n\t"
        "movq 0(%1), %%rsp\n\t"
        "movq 8(%1), %%rbp\n\t"
        "jmpq *16(%1)\n"
        "1:"
        : "+a"(from), "+d"(to)
        :
        : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
          "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
          "cc", "memory");
}

// A stack ending at `top` whose first switch enters `entry`, which never returns; aligned as after a call.
inline void prepare_context(Context* context, char* top, void (*entry)()) {
    void** p = reinterpret_cast<void**>(reinterpret_cast<size_t>(top) & ~size_t(15));
    *--p = nullptr;  // entry's return address: none
    *context = Context{p, nullptr, reinterpret_cast<void*>(entry)};
}

#else

struct Context {
    void* sp = nullptr;
};

inline void switch_context(Context* from, Context* to) {
    ucontext_t here;
    from->sp = &here;
    swapcontext(&here, static_cast<ucontext_t*>(to->sp));
}

inline void prepare_context(Context* context, char* top, void (*entry)()) {
    // The context lives at the top of its own stack.
    char* place = reinterpret_cast<char*>((reinterpret_cast<size_t>(top) - sizeof(ucontext_t)) & ~size_t(63));
    auto* made = new (place) ucontext_t;
    getcontext(made);
    constexpr size_t ROOM = 192 * 1024;  // of the 256 KB that a stack has at least
    made->uc_stack.ss_sp = place - ROOM;
    made->uc_stack.ss_size = ROOM - 64;
    made->uc_link = nullptr;
    makecontext(made, entry, 0);
    context->sp = made;
}

#endif

}  // namespace sim
