// Where the compiler's instrumentation arrives: ThreadSanitizer's calls in race mode, AddressSanitizer's reports in
// asan mode, alignment checks of UndefinedBehaviorSanitizer in both.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

#define HIDDEN extern "C" __attribute__((visibility("hidden")))

#if SIM_MODE != 0

namespace {
// The layout that the compiler gives to -fsanitize=alignment.
struct SourceLocation {
    const char* file;
    unsigned line, column;
};
struct TypeDescriptor {
    unsigned short kind, info;
    char name[1];
};
struct TypeMismatch {
    SourceLocation place;
    TypeDescriptor* type;
    unsigned char log_alignment, kind;
};
}  // namespace

static void mismatch(TypeMismatch* data, size_t pointer) {
    if (!sim::block) return;
    const size_t alignment = size_t(1) << data->log_alignment;
    if (pointer == 0 || pointer % alignment == 0) return;
    if (std::strstr(data->place.file, SIM_FOLDER)) return;  // the simulator's own check says it better
    const std::string text = "an access as " + std::string(data->type->name) +
                             " at an address that is not a multiple of " + std::to_string(alignment);
    sim::add_report(sim::report_here("misaligned", text, {data->place.file, static_cast<int>(data->place.line)}));
}
HIDDEN void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, size_t pointer) {
    mismatch(data, pointer);
}
HIDDEN void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* data, size_t pointer) {
    mismatch(data, pointer);
}

#endif

#if SIM_MODE == 2

namespace sim {
void announce_volatile(const void* address, u32 bytes, bool write, const void* pc);
}  // namespace sim

#define PC __builtin_return_address(0)
#define ACCESS(N)                                             \
    HIDDEN void __tsan_read##N(void* p) {                     \
        sim::announce(p, N, sim::READ, PC);                   \
    }                                                         \
    HIDDEN void __tsan_write##N(void* p) {                    \
        sim::announce(p, N, sim::WRITE, PC);                  \
    }                                                         \
    HIDDEN void __tsan_unaligned_read##N(void* p) {           \
        sim::announce(p, N, sim::READ, PC);                   \
    }                                                         \
    HIDDEN void __tsan_unaligned_write##N(void* p) {          \
        sim::announce(p, N, sim::WRITE, PC);                  \
    }                                                         \
    HIDDEN void __tsan_volatile_read##N(void* p) {            \
        sim::announce_volatile(p, N, false, PC);              \
    }                                                         \
    HIDDEN void __tsan_volatile_write##N(void* p) {           \
        sim::announce_volatile(p, N, true, PC);               \
    }                                                         \
    HIDDEN void __tsan_unaligned_volatile_read##N(void* p) {  \
        sim::announce_volatile(p, N, false, PC);              \
    }                                                         \
    HIDDEN void __tsan_unaligned_volatile_write##N(void* p) { \
        sim::announce_volatile(p, N, true, PC);               \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
HIDDEN void __tsan_read_range(void* p, size_t n) {
    sim::announce(p, static_cast<unsigned>(n), sim::READ, PC);
}
HIDDEN void __tsan_write_range(void* p, size_t n) {
    sim::announce(p, static_cast<unsigned>(n), sim::WRITE, PC);
}
HIDDEN void __tsan_init() {}
HIDDEN void __tsan_func_entry(void*) {}
HIDDEN void __tsan_func_exit() {}
HIDDEN void __tsan_vptr_update(void**, void*) {}
HIDDEN void __tsan_vptr_read(void**) {}

// The compiler's atomics in user code and in inlined headers: performed, and announced as atomic.
#define ATOMICS(BITS, T)                                                                                   \
    HIDDEN T __tsan_atomic##BITS##_load(const volatile T* p, int) {                                        \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::Access(sim::ATOMIC | sim::LOAD), PC);       \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                       \
    }                                                                                                      \
    HIDDEN void __tsan_atomic##BITS##_store(volatile T* p, T v, int) {                                     \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                          \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_exchange(volatile T* p, T v, int) {                                     \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                                \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_fetch_add(volatile T* p, T v, int) {                                    \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                                 \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_fetch_sub(volatile T* p, T v, int) {                                    \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                                 \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_fetch_and(volatile T* p, T v, int) {                                    \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                                 \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_fetch_or(volatile T* p, T v, int) {                                     \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                                      \
    HIDDEN T __tsan_atomic##BITS##_fetch_xor(volatile T* p, T v, int) {                                    \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::ATOMIC, PC);                                \
        return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                                 \
    }                                                                                                      \
    HIDDEN bool __tsan_atomic##BITS##_compare_exchange_strong(volatile T* p, T* expected, T v, int, int) { \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::CAS, PC);                                   \
        return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    }                                                                                                      \
    HIDDEN bool __tsan_atomic##BITS##_compare_exchange_weak(volatile T* p, T* expected, T v, int, int) {   \
        sim::announce(const_cast<const T*>(p), sizeof(T), sim::CAS, PC);                                   \
        return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    }
ATOMICS(8, unsigned char)
ATOMICS(16, unsigned short)
ATOMICS(32, unsigned int)
ATOMICS(64, unsigned long long)
HIDDEN void __tsan_atomic_thread_fence(int) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HIDDEN void __tsan_atomic_signal_fence(int) {}

// Copies that the compiler leaves as calls.
HIDDEN void* memcpy(void* target, const void* source, size_t bytes) {
    if (sim::block && bytes) {
        sim::announce(source, static_cast<unsigned>(bytes), sim::READ, PC);
        sim::announce(target, static_cast<unsigned>(bytes), sim::WRITE, PC);
    }
    void* result = target;
    asm volatile("rep movsb" : "+D"(target), "+S"(source), "+c"(bytes) : : "memory");
    return result;
}
HIDDEN void* memset(void* target, int value, size_t bytes) {
    if (sim::block && bytes) sim::announce(target, static_cast<unsigned>(bytes), sim::WRITE, PC);
    void* result = target;
    asm volatile("rep stosb" : "+D"(target), "+c"(bytes) : "a"(value) : "memory");
    return result;
}

#endif

#if SIM_MODE == 1

#include <sanitizer/asan_interface.h>

namespace {

// AddressSanitizer tells its findings as text, on the thread that made them; the frames name the user's line.
void on_report(const char* text) {
    if (!sim::block) {
        std::fputs(text, stderr);
        return;
    }
    sim::Place place;
    std::string all(text);
    size_t at = 0;
    while ((at = all.find("\n    #", at)) != std::string::npos) {
        at += 1;
        const std::string line = all.substr(at, all.find('\n', at) - at);
        const size_t in = line.rfind(' ');
        std::string where = in == std::string::npos ? "" : line.substr(in + 1);
        const size_t colon = where.find(':', where.rfind('/') == std::string::npos ? 0 : where.rfind('/'));
        if (line.find(" in ") == std::string::npos || colon == std::string::npos ||
            where.find(SIM_FOLDER) != std::string::npos)
            continue;
        const std::string name = where.substr(0, colon);
        if (name.compare(0, 5, "/usr/") == 0 || name.compare(0, 2, "..") == 0) continue;
        place.file = strdup(name.c_str());
        place.line = std::atoi(where.c_str() + colon + 1);
        break;
    }
    if (!place.file) place.pc = __asan_get_report_pc();
    const char* description = __asan_get_report_description();
    std::string kind = description ? description : "error";
    std::string message = std::string(__asan_get_report_access_type() ? "write" : "read") + " of " +
                          std::to_string(__asan_get_report_access_size()) + " bytes (" + kind + ")";
    const char* start;
    size_t size;
    bool freed;
    const char* address = static_cast<const char*>(__asan_get_report_address());
    if (kind == "use-after-poison" && sim::find_allocation(address, &start, &size, &freed)) {
        if (freed)
            message += " in memory that was freed";
        else if (address < start)
            message += ", " + std::to_string(start - address) + " bytes before an allocation of " +
                       std::to_string(size) + " bytes";
        else
            message += ", " + std::to_string(address - (start + size)) + " bytes after the end of an allocation of " +
                       std::to_string(size) + " bytes";
    }
    sim::add_report(sim::report_here("out_of_bounds", message, place));
}

struct Installed {
    Installed() { __asan_set_error_report_callback(on_report); }
} installed;

}  // namespace

#endif
