// Asynchronous copies from global to shared memory (cp.async, sm_80 and later): 16 bytes per call and thread, or 4.
//
// The data bypass registers and L1, so a thread may have far more bytes in flight than it has registers. A thread sees
// its own copies after cp_async_wait<N>() alone; other threads see them after a __syncthreads() that follows the wait.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace kernels {

// The 32-bit address inside the shared window that PTX instructions take.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Both addresses must be 16-byte aligned.
__device__ __forceinline__ void cp_async_16(void* shared, const void* global) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(shared)), "l"(global) : "memory");
}

// 4 bytes, for addresses aligned to no more.
__device__ __forceinline__ void cp_async_4(void* shared, const void* global) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(shared_address(shared)), "l"(global) : "memory");
}

// Copies 16 bytes where `valid`, else fills the 16 bytes with zeros; the global address is not read then.
__device__ __forceinline__ void cp_async_16_zfill(void* shared, const void* global, bool valid) {
    const int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(shared)), "l"(global),
                 "r"(bytes)
                 : "memory");
}

// Closes the group of copies issued since the last commit; an empty group is allowed and counts.
__device__ __forceinline__ void cp_async_commit() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most PENDING of this thread's newest groups are still in flight.
template <int PENDING>
__device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

}  // namespace kernels
