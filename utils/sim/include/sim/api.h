// The parts of the runtime API that are templates in CUDA's own header, over the C functions of runtime/api.cpp.
#pragma once

#include <sim/core.h>

namespace sim {
void set_opt_in_shared(const void* address, size_t bytes);
cudaError_t function_attribute(const void* address, cudaFuncAttribute attribute, int value);
cudaError_t occupancy(int* blocks, int threads, size_t dynamic_shared);
cudaError_t active_clusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config);
cudaError_t largest_cluster(int* blocks, const void* kernel);
Config config_of(const cudaLaunchConfig_t* config);

template <class... P>
cudaError_t launch_pointers(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared,
                            cudaStream_t stream, bool cooperative, const char* file, int line) {
    Config config(grid, block, shared, stream);
    config.cooperative = cooperative;
    if (cooperative) {
        int per = 0;
        occupancy(&per, static_cast<int>(block.x * block.y * block.z), shared);
        int device_blocks = 0;
        cudaDeviceGetAttribute(&device_blocks, cudaDevAttrMultiProcessorCount, 0);
        if (static_cast<u64>(grid.x) * grid.y * grid.z > static_cast<u64>(per) * static_cast<u64>(device_blocks))
            return cudaErrorCooperativeLaunchTooLarge;
    }
    launch_with(kernel, arguments, config, file, line, std::make_index_sequence<sizeof...(P)>());
    return cudaPeekAtLastError();
}
}  // namespace sim

template <class... P>
cudaError_t cudaLaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,
                             cudaStream_t stream = nullptr, SIM_SITE) {
    return sim::launch_pointers(kernel, grid, block, arguments, shared, stream, false, SIM_HERE);
}

template <class... P>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments,
                                        size_t shared = 0, cudaStream_t stream = nullptr, SIM_SITE) {
    return sim::launch_pointers(kernel, grid, block, arguments, shared, stream, true, SIM_HERE);
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... arguments) {
    std::tuple<std::decay_t<P>...> held(std::forward<A>(arguments)...);
    auto body = [&] { std::apply(kernel, held); };
    sim::launch_body("kernel", __builtin_FILE(), __builtin_LINE(), reinterpret_cast<const void*>(kernel),
                     sim::config_of(config), body);
    return cudaPeekAtLastError();
}

template <class T>
cudaError_t cudaFuncSetAttribute(T* kernel, cudaFuncAttribute attribute, int value) {
    return sim::function_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class T>
cudaError_t cudaFuncSetCacheConfig(T*, cudaFuncCache) {
    return cudaSuccess;
}
template <class T>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, T*) {
    *attributes = cudaFuncAttributes{};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->ptxVersion = attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = 48 * 1024;
    return cudaSuccess;
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, T*, int threads, size_t dynamic_shared) {
    return sim::occupancy(blocks, threads, dynamic_shared);
}
template <class T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, T*, int threads, size_t dynamic_shared,
                                                                   unsigned) {
    return sim::occupancy(blocks, threads, dynamic_shared);
}
template <class T>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, T, size_t dynamic_shared = 0, int limit = 0) {
    *block = limit > 0 && limit < 256 ? limit : 256;
    int per = 0, count = 0;
    const cudaError_t error = sim::occupancy(&per, *block, dynamic_shared);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
    *grid = per * count;
    return error;
}

template <class T>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, T* kernel, const cudaLaunchConfig_t* config) {
    return sim::active_clusters(clusters, reinterpret_cast<const void*>(kernel), config);
}
template <class T>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, T* kernel, const cudaLaunchConfig_t*) {
    return sim::largest_cluster(blocks, reinterpret_cast<const void*>(kernel));
}

template <class T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
    return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <class T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) {
    return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned flags) {
    return cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class T>
cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned flags = cudaMemAttachGlobal) {
    return cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}

template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* source, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return cudaMemcpy(reinterpret_cast<char*>(const_cast<std::remove_const_t<T>*>(&symbol)) + offset, source, bytes,
                      kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* source, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
    return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return cudaMemcpy(target, reinterpret_cast<const char*>(&symbol) + offset, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyDeviceToHost, cudaStream_t = nullptr) {
    return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
    *address = const_cast<void*>(static_cast<const void*>(&symbol));
    return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
    *bytes = sizeof(T);
    return cudaSuccess;
}
