// torch's caching allocator for the simulator: torch's CPU allocator.
#pragma once

#include <c10/core/CPUAllocator.h>
#include <cuda_runtime_api.h>

namespace c10::cuda::CUDACachingAllocator {
inline Allocator* get() {
    return c10::GetCPUAllocator();
}
inline void* raw_alloc(size_t bytes) {
    return get()->raw_allocate(bytes);
}
inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t) {
    return get()->raw_allocate(bytes);
}
inline void raw_delete(void* pointer) {
    get()->raw_deallocate(pointer);
}
inline void emptyCache() {}
}  // namespace c10::cuda::CUDACachingAllocator
