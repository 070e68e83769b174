// The pipeline primitives over the simulator's deferred copies.
#pragma once

#include <sim/core.h>

inline void __pipeline_memcpy_async(void* target, const void* source, size_t bytes, size_t zero_fill = 0, SIM_SITE) {
    sim::async_copy(target, source, static_cast<unsigned>(bytes), static_cast<unsigned>(bytes - zero_fill), SIM_HERE);
}
inline void __pipeline_commit() {
    sim::async_commit();
}
inline void __pipeline_wait_prior(size_t groups) {
    sim::async_wait(static_cast<unsigned>(groups));
}
