// Loads and stores with cache hints (the hints mean nothing here), and addresses of the shared window.
#pragma once

#include <sim/core.h>

namespace sim {

// In race mode these are calls of their own, whose return address is the user's line.
template <class T>
SIM_RAW T hinted_load(const T* address, const char* file, int line) {
#if SIM_MODE
    check_aligned(address, alignof(T) > sizeof(T) ? 1 : alignof(T), file, line);
#else
    (void)file, (void)line;
#endif
    SIM_ANNOUNCE(address, sizeof(T), READ);
    return *address;
}
template <class T>
SIM_RAW void hinted_store(T* address, T value, const char* file, int line) {
#if SIM_MODE
    check_aligned(address, alignof(T), file, line);
#else
    (void)file, (void)line;
#endif
    SIM_ANNOUNCE(address, sizeof(T), WRITE);
    *address = value;
}

char* shared_window();  // start of this block's shared memory

}  // namespace sim

#define SIM_LOAD(NAME)                              \
    template <class T>                              \
    inline T NAME(const T* address, SIM_SITE) {     \
        return sim::hinted_load(address, SIM_HERE); \
    }
#define SIM_STORE(NAME)                                                   \
    template <class T>                                                    \
    inline void NAME(T* address, std::common_type_t<T> value, SIM_SITE) { \
        sim::hinted_store(address, static_cast<T>(value), SIM_HERE);      \
    }
SIM_LOAD(__ldg)
SIM_LOAD(__ldcg)
SIM_LOAD(__ldca)
SIM_LOAD(__ldcs)
SIM_LOAD(__ldlu)
SIM_LOAD(__ldcv)
SIM_STORE(__stwb)
SIM_STORE(__stcg)
SIM_STORE(__stcs)
SIM_STORE(__stwt)
#undef SIM_LOAD
#undef SIM_STORE

inline size_t __cvta_generic_to_shared(const void* pointer) {
    return static_cast<size_t>(static_cast<const char*>(pointer) - sim::shared_window());
}
inline void* __cvta_shared_to_generic(size_t address) {
    return sim::shared_window() + address;
}
inline size_t __cvta_generic_to_global(const void* pointer) {
    return reinterpret_cast<size_t>(pointer);
}
inline void* __cvta_global_to_generic(size_t address) {
    return reinterpret_cast<void*>(address);
}
inline unsigned __isShared(const void* pointer) {
    return static_cast<size_t>(static_cast<const char*>(pointer) - sim::shared_window()) < 512 * 1024;
}
