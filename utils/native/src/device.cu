// What a device is, what it is doing, and which errors wait in this process.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "context.h"

// Mirrored in utils/native/device.py.
struct DeviceFacts {
    char name[256];
    char pci[32];
    int32_t major, minor, multiprocessors, clock_khz, memory_clock_khz, bus_bits, driver_version, runtime_version;
    int64_t l2_bytes, persisting_l2_bytes, memory_total, memory_free, shared_per_block, shared_per_multiprocessor;
};

namespace {

int32_t attribute(cudaDeviceAttr which, int32_t device) {
    int value = 0;
    cudaDeviceGetAttribute(&value, which, device);
    return value;
}

// Every CUDA runtime that was loaded as a library of its own, by the path it was loaded from.
std::vector<std::string> loaded_runtimes() {
    std::vector<std::string> found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* list) {
            if (info->dlpi_name != nullptr && std::strstr(info->dlpi_name, "libcudart.so") != nullptr)
                static_cast<std::vector<std::string>*>(list)->push_back(info->dlpi_name);
            return 0;
        },
        &found);
    return found;
}

}  // namespace

NATIVE_API int32_t native_device_facts(int32_t device, DeviceFacts* facts) {
    *facts = {};
    ENTER(device);
    cudaDeviceProp properties;
    RUNTIME(cudaGetDeviceProperties(&properties, device));
    std::snprintf(facts->name, sizeof(facts->name), "%s", properties.name);
    RUNTIME(cudaDeviceGetPCIBusId(facts->pci, sizeof(facts->pci), device));
    facts->major = properties.major;
    facts->minor = properties.minor;
    facts->multiprocessors = properties.multiProcessorCount;
    facts->clock_khz = attribute(cudaDevAttrClockRate, device);
    facts->memory_clock_khz = attribute(cudaDevAttrMemoryClockRate, device);
    facts->bus_bits = attribute(cudaDevAttrGlobalMemoryBusWidth, device);
    facts->l2_bytes = attribute(cudaDevAttrL2CacheSize, device);
    facts->persisting_l2_bytes = attribute(cudaDevAttrMaxPersistingL2CacheSize, device);
    facts->shared_per_block = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    facts->shared_per_multiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
    RUNTIME(cudaDriverGetVersion(&facts->driver_version));
    RUNTIME(cudaRuntimeGetVersion(&facts->runtime_version));
    size_t free = 0, total = 0;
    RUNTIME(cudaMemGetInfo(&free, &total));
    facts->memory_free = int64_t(free);
    facts->memory_total = int64_t(total);
    return kOk;
}

// 1 in `idle` when all work queued on the stream has ended.
NATIVE_API int32_t native_stream_idle(int32_t device, cudaStream_t stream, int32_t* idle) {
    ENTER(device);
    const cudaError_t state = cudaStreamQuery(stream);
    *idle = state == cudaSuccess;
    if (state == cudaErrorNotReady) cudaGetLastError();
    if (state != cudaSuccess && state != cudaErrorNotReady) return runtime_failed(state, "cudaStreamQuery");
    return kOk;
}

NATIVE_API int32_t native_synchronize_stream(int32_t device, cudaStream_t stream) {
    ENTER(device);
    RUNTIME(cudaStreamSynchronize(stream));
    return kOk;
}

NATIVE_API int32_t native_synchronize_device(int32_t device) {
    ENTER(device);
    RUNTIME(cudaDeviceSynchronize());
    return kOk;
}

// One line for each error that waits unread, for the calling thread, in a CUDA runtime loaded by another library.
NATIVE_API int32_t native_pending_errors(char* text, int64_t capacity) {
    std::string lines;
    for (const std::string& path : loaded_runtimes()) {
        void* runtime = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        if (runtime == nullptr) continue;
        const auto peek = reinterpret_cast<cudaError_t (*)()>(dlsym(runtime, "cudaPeekAtLastError"));
        const cudaError_t error = peek == nullptr ? cudaSuccess : peek();
        if (error != cudaSuccess) {
            const size_t slash = path.rfind('/');
            lines += std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error) + " (" +
                     (slash == std::string::npos ? path : path.substr(slash + 1)) + ")\n";
        }
        dlclose(runtime);
    }
    std::snprintf(text, size_t(capacity), "%s", lines.c_str());
    return kOk;
}
