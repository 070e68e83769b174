// Trouble in a kernel: what the hardware catches, and what the simulator's own headers notice.
#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "state.h"

namespace sim {

namespace {

struct sigaction old_segv, old_bus, old_fpe;

// Whether an address is at the low end of a simulated thread's stack.
bool at_stack_end(const char* at) {
    for (const Fiber* fiber : worker->fibers)
        if (at >= fiber->stack && at < fiber->stack + 8192) return true;
    return false;
}

void on_fault(int number, siginfo_t* info, void* context) {
    if (!worker || !worker->inside || !block) {
        struct sigaction* old = number == SIGSEGV ? &old_segv : number == SIGBUS ? &old_bus : &old_fpe;
        sigaction(number, old, nullptr);
        return;  // the instruction faults again, into whoever was there before
    }
    worker->inside = false;  // a second fault, in here, is the simulator's own
    Place place;
#if defined(__x86_64__)
    // reports take a program counter for a return address, just after the instruction
    place.pc = reinterpret_cast<void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] + 1);
#else
    (void)context;
#endif
    char text[160];
    if (number == SIGFPE) {
        std::snprintf(text, sizeof text, "integer division by zero");
    } else if (info->si_addr == nullptr && info->si_code == SI_KERNEL) {
        std::snprintf(text, sizeof text, "misaligned or non-canonical address");
    } else {
        const char* at = static_cast<const char*>(info->si_addr);
        if (at_stack_end(at))
            std::snprintf(text, sizeof text, "stack overflow: the thread's local variables need more than %zu bytes",
                          settings.stack);
        else
            std::snprintf(text, sizeof text, "illegal address %p", info->si_addr);
    }
    Report report = report_here(number == SIGFPE ? "arithmetic" : "illegal_access", text, place);
    report.fatal = true;
    add_report(std::move(report));
    abandon();
}

}  // namespace

void catch_faults() {
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    struct sigaction now{};
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_sigaction == on_fault) return;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    sigaction(SIGFPE, &action, &old_fpe);
}

void complain(const char* kind, const char* message, const char* file, int line) {
    if (block) add_report(report_here(kind, message, {file, line}));
}

void fatal(const char* kind, const char* message, const char* file, int line) {
    if (!block) {
        std::fprintf(stderr, "simulator: %s: %s at %s:%d\n", kind, message, file ? file : "?", line);
        std::abort();
    }
    Report report = report_here(kind, message, {file, line});
    report.fatal = true;
    add_report(std::move(report));
    abandon();
}

void unsupported(const char* what, const char* file, int line) {
    if (!block)
        throw std::runtime_error(std::string("[sim:unsupported] ") + what + " is not simulated (" + file + ":" +
                                 std::to_string(line) + ")");
    fatal("unsupported", (std::string(what) + " is not simulated").c_str(), file, line);
}

void check_aligned(const void* address, u32 bytes, const char* file, int line) {
    if (!block || bytes == 0 || (bytes & (bytes - 1)) || reinterpret_cast<size_t>(address) % bytes == 0) return;
    fatal("misaligned",
          ("an access of " + std::to_string(bytes) + " bytes at an address that is not a multiple of " +
           std::to_string(bytes))
              .c_str(),
          file, line);
}

}  // namespace sim

extern "C" {

// A failed assert(): the kernel's when one runs, else the program's.
__attribute__((visibility("hidden"), noreturn)) void __assert_fail(const char* text, const char* file, unsigned line,
                                                                   const char*) noexcept {
    if (sim::block)
        sim::fatal("assert", (std::string("assertion `") + text + "` failed").c_str(), file, static_cast<int>(line));
    std::fprintf(stderr, "%s:%u: assertion `%s` failed\n", file, line, text);
    std::abort();
}
}
