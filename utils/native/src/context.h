// The CUDA driver, opened when first needed, and the scope in which a device's primary context is current.
//
// The library is not linked against libcuda, so it loads on machines without a driver. The primary context is the one
// torch works in: pointers, streams and limits are shared with it.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include "platform.h"

// cuda.h maps some of these names to later versions (cuMemGetInfo to cuMemGetInfo_v2); the list follows it.
// clang-format off
#define DRIVER_FUNCTIONS(X) \
    X(cuInit) X(cuGetErrorName) X(cuGetErrorString) \
    X(cuDeviceGet) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) \
    X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxSynchronize) \
    X(cuMemGetInfo) X(cuMemGetAllocationGranularity) \
    X(cuMemCreate) X(cuMemRelease) X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) \
    X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess)
// clang-format on

struct Driver {
#define MEMBER(f) decltype(&::f) f;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

// The driver, initialised; null where there is none, with the reason in native_last_error().
const Driver* driver();

// Makes `device`'s primary context current in this thread, and gives the former one back at the end.
class DeviceScope {
  public:
    explicit DeviceScope(int32_t device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

    int32_t status;
};

// Report a failed call with its name and CUDA's own words; the result is the status to return.
int32_t runtime_failed(cudaError_t error, const char* call);
int32_t driver_failed(CUresult error, const char* call);

#define RUNTIME(call)                                                    \
    do {                                                                 \
        const cudaError_t error_ = (call);                               \
        if (error_ != cudaSuccess) return runtime_failed(error_, #call); \
    } while (0)

#define ENTER(device)           \
    DeviceScope scope_(device); \
    if (scope_.status != kOk) return scope_.status

// Pinned host memory that kernels write their partial results into, one per process: held while in use.
class Mailbox {
  public:
    explicit Mailbox(size_t bytes);
    ~Mailbox();
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    void* memory;  // null when there is none to be had; `status` says why
    int32_t status;
};

int multiprocessors(int32_t device);
