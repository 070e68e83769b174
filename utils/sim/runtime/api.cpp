// The CUDA runtime API as launchers use it. Streams are synchronous: whatever is called has happened on return.
#include <sim/api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

namespace sim {

cudaError_t fail(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t function_attribute(const void* address, cudaFuncAttribute attribute, int value) {
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || static_cast<size_t>(value) > SHARED_OPT_IN) return fail(cudaErrorInvalidValue);
        set_opt_in_shared(address, static_cast<size_t>(value));
    }
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) allow_non_portable_cluster(address, value != 0);
    return cudaSuccess;
}

cudaError_t occupancy(int* blocks, int threads, size_t dynamic_shared) {
    *blocks = 0;
    if (threads <= 0 || threads > 1024 || dynamic_shared > SHARED_OPT_IN) return fail(cudaErrorInvalidValue);
    const int by_threads = THREADS_PER_MULTIPROCESSOR / ((threads + 31) / 32 * 32);
    const int by_shared = static_cast<int>(SHARED_PER_MULTIPROCESSOR / (dynamic_shared + 1024));
    *blocks = std::min({by_threads, by_shared, BLOCKS_PER_MULTIPROCESSOR});
    return cudaSuccess;
}

// As if any of the device's multiprocessors could share a cluster.
cudaError_t active_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config) {
    const Config c = config_of(config);
    const u32 size = c.cluster.x * c.cluster.y * c.cluster.z;
    int blocks = 0;
    *clusters = 0;
    if (size == 0 || size > most_blocks_in_cluster(kernel)) return fail(cudaErrorInvalidClusterSize);
    const int threads = static_cast<int>(c.block.x * c.block.y * c.block.z);
    if (const cudaError_t error = occupancy(&blocks, threads, c.shared)) return error;
    *clusters = blocks * MULTIPROCESSORS / static_cast<int>(size);
    return cudaSuccess;
}

cudaError_t largest_cluster(int* blocks, const void* kernel) {
    *blocks = static_cast<int>(most_blocks_in_cluster(kernel));
    return cudaSuccess;
}

Config config_of(const cudaLaunchConfig_t* config) {
    Config c(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
    for (unsigned i = 0; i < config->numAttrs; ++i) {
        const cudaLaunchAttribute& a = config->attrs[i];
        if (a.id == cudaLaunchAttributeCooperative) c.cooperative = a.val.cooperative != 0;
        if (a.id == cudaLaunchAttributeClusterDimension)
            c.cluster = dim3(a.val.clusterDim.x, a.val.clusterDim.y, a.val.clusterDim.z);
    }
    return c;
}

struct Event {
    std::chrono::steady_clock::time_point at;
    bool recorded = false;
};

int attribute_value(cudaDeviceAttr attribute) {
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            return 1024;
        case cudaDevAttrMaxBlockDimX:
            return 1024;
        case cudaDevAttrMaxBlockDimY:
            return 1024;
        case cudaDevAttrMaxBlockDimZ:
            return 64;
        case cudaDevAttrMaxGridDimX:
            return 2147483647;
        case cudaDevAttrMaxGridDimY:
            return 65535;
        case cudaDevAttrMaxGridDimZ:
            return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return static_cast<int>(SHARED_DEFAULT);
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            return static_cast<int>(SHARED_OPT_IN);
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            return static_cast<int>(SHARED_PER_MULTIPROCESSOR);
        case cudaDevAttrReservedSharedMemoryPerBlock:
            return 1024;
        case cudaDevAttrWarpSize:
            return 32;
        case cudaDevAttrMaxRegistersPerBlock:
            return 65536;
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            return 65536;
        case cudaDevAttrMultiProcessorCount:
            return MULTIPROCESSORS;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return THREADS_PER_MULTIPROCESSOR;
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            return BLOCKS_PER_MULTIPROCESSOR;
        case cudaDevAttrComputeCapabilityMajor:
            return 9;
        case cudaDevAttrComputeCapabilityMinor:
            return 0;
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrClusterLaunch:
            return 1;
        case cudaDevAttrClockRate:
            return 1000000;
        case cudaDevAttrL2CacheSize:
            return 50 * 1024 * 1024;
        case cudaDevAttrUnifiedAddressing:
            return 1;
        case cudaDevAttrManagedMemory:
            return 1;
        case cudaDevAttrConcurrentManagedAccess:
            return 1;
        case cudaDevAttrMemoryPoolsSupported:
            return 1;
        case cudaDevAttrTotalConstantMemory:
            return 65536;
        default:
            return 0;
    }
}

}  // namespace sim

using sim::fail;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    *pointer = bytes ? sim::device_allocate(bytes) : nullptr;
    return bytes && !*pointer ? fail(cudaErrorMemoryAllocation) : cudaSuccess;
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
    return cudaMalloc(pointer, bytes);
}
cudaError_t cudaFree(void* pointer) {
    if (pointer) sim::device_free(pointer);
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
    return cudaFree(pointer);
}
cudaError_t cudaFreeHost(void* pointer) {
    return cudaFree(pointer);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind) {
    std::memmove(target, source, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy(target, source, bytes, kind);
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                         size_t height, cudaMemcpyKind) {
    if (width > target_pitch || width > source_pitch) return fail(cudaErrorInvalidPitchValue);
    for (size_t row = 0; row < height; ++row)
        std::memmove(static_cast<char*>(target) + row * target_pitch,
                     static_cast<const char*>(source) + row * source_pitch, width);
    return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind);
}
cudaError_t cudaMemset(void* target, int value, size_t bytes) {
    std::memset(target, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t) {
    return cudaMemset(target, value, bytes);
}
cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
    for (size_t row = 0; row < height; ++row) std::memset(static_cast<char*>(target) + row * pitch, value, width);
    return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    *free = *total = size_t(8) << 30;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
// -1 is the index of torch's CPU device, which stands for the simulated one.
cudaError_t cudaSetDevice(int device) {
    return device == 0 || device == -1 ? cudaSuccess : fail(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
    *value = sim::attribute_value(attribute);
    return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
    *p = cudaDeviceProp{};
    std::snprintf(p->name, sizeof p->name, "simulated device");
    p->totalGlobalMem = size_t(8) << 30;
    p->sharedMemPerBlock = sim::SHARED_DEFAULT;
    p->sharedMemPerBlockOptin = sim::SHARED_OPT_IN;
    p->sharedMemPerMultiprocessor = sim::SHARED_PER_MULTIPROCESSOR;
    p->reservedSharedMemPerBlock = 1024;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 65536;
    p->major = 9;
    p->minor = 0;
    p->multiProcessorCount = sim::MULTIPROCESSORS;
    p->maxThreadsPerMultiProcessor = sim::THREADS_PER_MULTIPROCESSOR;
    p->maxBlocksPerMultiProcessor = sim::BLOCKS_PER_MULTIPROCESSOR;
    p->l2CacheSize = 50 * 1024 * 1024;
    p->unifiedAddressing = p->managedMemory = p->cooperativeLaunch = p->clusterLaunch = 1;
    return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
    return sim::sticky_error;
}
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) {
    return cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) {
    *value = sim::settings.stack;
    return cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
    return cudaSuccess;
}
cudaError_t cudaCtxResetPersistingL2Cache() {
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    return cudaDriverGetVersion(version);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    *attributes = cudaPointerAttributes{};
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = 0;
    attributes->devicePointer = attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
}

cudaError_t cudaGetLastError() {
    const cudaError_t error = sim::last_error;
    sim::last_error = cudaSuccess;
    return error;
}
cudaError_t cudaPeekAtLastError() {
    return sim::last_error;
}
const char* cudaGetErrorName(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "cudaSuccess";
        case cudaErrorInvalidValue:
            return "cudaErrorInvalidValue";
        case cudaErrorMemoryAllocation:
            return "cudaErrorMemoryAllocation";
        case cudaErrorInvalidConfiguration:
            return "cudaErrorInvalidConfiguration";
        case cudaErrorInvalidDevice:
            return "cudaErrorInvalidDevice";
        case cudaErrorInvalidPitchValue:
            return "cudaErrorInvalidPitchValue";
        case cudaErrorLaunchFailure:
            return "cudaErrorLaunchFailure";
        case cudaErrorCooperativeLaunchTooLarge:
            return "cudaErrorCooperativeLaunchTooLarge";
        case cudaErrorInvalidClusterSize:
            return "cudaErrorInvalidClusterSize";
        case cudaErrorNotSupported:
            return "cudaErrorNotSupported";
        default:
            return "cudaError";
    }
}
const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument (simulated device)";
        case cudaErrorMemoryAllocation:
            return "out of memory (simulated device)";
        case cudaErrorInvalidConfiguration:
            return "invalid configuration argument (simulated device)";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal (simulated device)";
        case cudaErrorInvalidPitchValue:
            return "invalid pitch argument (simulated device)";
        case cudaErrorLaunchFailure:
            return "unspecified launch failure (simulated device)";
        case cudaErrorCooperativeLaunchTooLarge:
            return "too many blocks in cooperative launch (simulated device)";
        case cudaErrorInvalidClusterSize:
            return "cluster misconfiguration (simulated device)";
        case cudaErrorNotSupported:
            return "operation not supported (simulated device)";
        default:
            return "error of the simulated device";
    }
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = reinterpret_cast<cudaStream_t>(std::malloc(16));
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    return cudaStreamCreate(stream);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
    return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    std::free(stream);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return sim::sticky_error;
}
cudaError_t cudaStreamQuery(cudaStream_t) {
    return sim::sticky_error;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
    return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int* priority) {
    *priority = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned* flags) {
    *flags = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
    function(data);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = reinterpret_cast<cudaEvent_t>(new sim::Event);
    return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete reinterpret_cast<sim::Event*>(event);
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    auto* e = reinterpret_cast<sim::Event*>(event);
    e->at = std::chrono::steady_clock::now();
    e->recorded = true;
    return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned) {
    return cudaEventRecord(event, stream);
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return sim::sticky_error;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
    return sim::sticky_error;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    auto* a = reinterpret_cast<sim::Event*>(start);
    auto* b = reinterpret_cast<sim::Event*>(end);
    if (!a->recorded || !b->recorded) return fail(cudaErrorInvalidResourceHandle);
    *milliseconds = std::chrono::duration<float, std::milli>(b->at - a->at).count();
    return cudaSuccess;
}
}
