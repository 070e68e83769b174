// Error checks for CUDA and its libraries: one macro per API family, the failing path out of line.
//
// Every macro throws a kernels::Error naming the call, the error by name and in words, and file:line; pybind11 turns it
// into a RuntimeError. No torch here, so kernels can use it; and neither <stdexcept> nor <string>, which would take two
// fifths more of the time in which nvcc compiles a small file.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdio>
#include <exception>

namespace kernels {

// A sentence about what went wrong, cut off at kLength characters.
class Error : public std::exception {
  public:
    Error(const char* format, va_list arguments) { std::vsnprintf(text_, sizeof(text_), format, arguments); }
    const char* what() const noexcept override { return text_; }

  private:
    static constexpr int kLength = 1023;
    char text_[kLength + 1];
};

// Throws an Error with the text that printf would make.
[[noreturn]] __attribute__((cold, noinline, format(printf, 1, 2))) inline void throw_error(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const Error error(format, arguments);
    va_end(arguments);
    throw error;
}

[[noreturn]] __attribute__((cold, noinline)) inline void throw_api_error(const char* api, const char* expression,
                                                                         const char* name, const char* meaning,
                                                                         const char* file, int line) {
    // A long call must not push the place out of the text.
    throw_error("%s error %s (%s) from %.300s at %s:%d", api, name, meaning, expression, file, line);
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
