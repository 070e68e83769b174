// Switching between stacks: some twenty instructions on x86-64, ucontext elsewhere.
#pragma once

#if defined(__x86_64__)

// Saves the callee-saved registers on the stack, leaves its top in *from, and goes on from `to`.
extern "C" void sim_switch(void** from, void* to);
asm(R"(
.text
.p2align 4
.globl sim_switch
.hidden sim_switch
.type sim_switch,@function
sim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size sim_switch,.-sim_switch
)");

namespace sim {
// A fresh stack whose first switch enters `entry` (which never returns), aligned as after a call.
inline void* prepare_stack(char* top, void (*entry)()) {
    void** p = reinterpret_cast<void**>(reinterpret_cast<size_t>(top) & ~size_t(15));
    *--p = nullptr;  // entry's return address: none
    *--p = reinterpret_cast<void*>(entry);
    for (int i = 0; i < 6; ++i) *--p = nullptr;
    return p;
}
}  // namespace sim

#else

#include <ucontext.h>

#include <cstdlib>

namespace sim {
inline void* prepare_stack(char* top, void (*entry)()) {
    // The context lives at the top of its own stack.
    char* place = reinterpret_cast<char*>((reinterpret_cast<size_t>(top) - sizeof(ucontext_t)) & ~size_t(63));
    ucontext_t* context = new (place) ucontext_t;
    getcontext(context);
    constexpr size_t ROOM = 192 * 1024;
    context->uc_stack.ss_sp = place - ROOM;
    context->uc_stack.ss_size = ROOM - 64;
    context->uc_link = nullptr;
    makecontext(context, entry, 0);
    return context;
}
}  // namespace sim

inline void sim_switch(void** from, void* to) {
    ucontext_t here;
    *from = &here;
    swapcontext(&here, static_cast<ucontext_t*>(to));
}

#endif
