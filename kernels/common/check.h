// Error checks for CUDA and its libraries: one macro per API family, the failing path out of line.
//
// Every macro throws std::runtime_error naming the call, the error by name and in words, and file:line; pybind11 turns
// it into a RuntimeError. No torch here, so kernels can use it.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace kernels {

[[noreturn]] __attribute__((cold, noinline)) inline void throw_api_error(const char* api, const char* expression,
                                                                         const char* name, const char* meaning,
                                                                         const char* file, int line) {
    throw std::runtime_error(std::string(api) + " error " + name + " (" + meaning + ") from " + expression + " at " +
                             file + ":" + std::to_string(line));
}

[[noreturn]] __attribute__((cold, noinline)) inline void throw_cuda_error(cudaError_t status, const char* expression,
                                                                          const char* file, int line) {
    throw_api_error("CUDA", expression, cudaGetErrorName(status), cudaGetErrorString(status), file, line);
}

}  // namespace kernels

// Throws unless the CUDA runtime call returned cudaSuccess.
#define CUDA_CHECK(expression)                                                               \
    do {                                                                                     \
        const cudaError_t cuda_check_status = (expression);                                  \
        if (__builtin_expect(cuda_check_status != cudaSuccess, 0)) {                         \
            ::kernels::throw_cuda_error(cuda_check_status, #expression, __FILE__, __LINE__); \
        }                                                                                    \
    } while (0)

// After every kernel launch: a bad grid, too much shared memory or a missing architecture shows only here.
#define CUDA_CHECK_LAUNCH() CUDA_CHECK(cudaGetLastError())
