// What every file of the native core needs: the C ABI's export macro, functions for host and device alike, and the
// one way to report an error.
//
// Every exported function returns 0 or an error code, and leaves a sentence for native_last_error() in the calling
// thread. No exception and no torch type crosses the ABI.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define HD __host__ __device__ __forceinline__
#else
#define HD inline
#endif

// A cold function: kept out of line so that the loop around it stays small and holds few registers.
#if defined(__CUDACC__)
#define HD_COLD inline __host__ __device__ __noinline__
#else
#define HD_COLD inline __attribute__((noinline))
#endif

// Unrolls the loop that follows, on the device.
#if defined(__CUDA_ARCH__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

#define NATIVE_API extern "C" __attribute__((visibility("default")))

// Negative codes are ours; positive ones are cudaError_t or CUresult values as they came.
enum NativeStatus : int32_t {
    kOk = 0,
    kBadArgument = -1,
    kOutOfMemory = -2,
    kNoDriver = -3,
    kNotSupported = -4,
};

// Keeps a sentence (printf style, at most 1 KiB) for native_last_error() and returns `code`.
int32_t native_fail(int32_t code, const char* format, ...) __attribute__((format(printf, 2, 3)));
