// Device memory that crosses processes: made with cuMemCreate, exported as a POSIX file descriptor, mapped on both
// sides.
#include <unistd.h>

#include "context.h"

// Mirrored in utils/native/arena.py.
struct ArenaBlock {
    uint64_t pointer;
    int64_t mapped;  // bytes, rounded up to the device's granularity
    uint64_t handle;
    int32_t fd;  // the exported descriptor, -1 on the side that attached
    int32_t device;
    int64_t free;  // free device memory when making it failed
};

namespace {

CUmemAllocationProp properties_on(int32_t device) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    return properties;
}

// Rounds `nbytes` up as both sides must: the size mapped has to be the size made.
int32_t rounded(int32_t device, int64_t nbytes, int64_t* mapped) {
    const CUmemAllocationProp properties = properties_on(device);
    size_t granularity = 0;
    const CUresult error =
        driver()->cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (error != CUDA_SUCCESS) return driver_failed(error, "cuMemGetAllocationGranularity");
    *mapped = (nbytes + int64_t(granularity) - 1) / int64_t(granularity) * int64_t(granularity);
    return kOk;
}

// Maps block->handle at an address of its own, readable and writable from the device. On failure nothing stays mapped.
int32_t map_block(ArenaBlock* block) {
    const Driver* cuda = driver();
    CUdeviceptr pointer = 0;
    CUresult error = cuda->cuMemAddressReserve(&pointer, block->mapped, 0, 0, 0);
    if (error != CUDA_SUCCESS) return driver_failed(error, "cuMemAddressReserve");
    error = cuda->cuMemMap(pointer, block->mapped, 0, block->handle, 0);
    if (error != CUDA_SUCCESS) {
        cuda->cuMemAddressFree(pointer, block->mapped);
        return driver_failed(error, "cuMemMap");
    }
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = block->device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    error = cuda->cuMemSetAccess(pointer, block->mapped, &access, 1);
    if (error != CUDA_SUCCESS) {
        cuda->cuMemUnmap(pointer, block->mapped);
        cuda->cuMemAddressFree(pointer, block->mapped);
        return driver_failed(error, "cuMemSetAccess");
    }
    block->pointer = pointer;
    return kOk;
}

}  // namespace

// Makes at least `nbytes` on `device` and fills `block`. kOutOfMemory when there is not enough, with block->free set.
NATIVE_API int32_t native_arena_create(int32_t device, int64_t nbytes, ArenaBlock* block) {
    *block = {};
    block->fd = -1;
    block->device = device;
    ENTER(device);
    const Driver* cuda = driver();
    int supported = 0;
    cuda->cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device);
    if (!supported) return native_fail(kNotSupported, "this driver cannot export device memory as a file descriptor");
    const int32_t status = rounded(device, nbytes, &block->mapped);
    if (status != kOk) return status;

    const CUmemAllocationProp properties = properties_on(device);
    CUmemGenericAllocationHandle handle = 0;
    CUresult error = cuda->cuMemCreate(&handle, block->mapped, &properties, 0);
    if (error != CUDA_SUCCESS) {
        size_t free = 0, total = 0;
        cuda->cuMemGetInfo(&free, &total);
        block->free = int64_t(free);
        driver_failed(error, "cuMemCreate");
        // An absurd size may be called an invalid value.
        return error == CUDA_ERROR_OUT_OF_MEMORY || block->mapped > block->free ? kOutOfMemory : int32_t(error);
    }
    block->handle = handle;
    int fd = -1;
    error = cuda->cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (error != CUDA_SUCCESS) {
        cuda->cuMemRelease(handle);
        return driver_failed(error, "cuMemExportToShareableHandle");
    }
    const int32_t mapped = map_block(block);
    if (mapped != kOk) {
        close(fd);
        cuda->cuMemRelease(handle);
        return mapped;
    }
    block->fd = fd;
    return kOk;
}

// Maps the memory behind a descriptor that native_arena_create exported for the same `nbytes`. The descriptor may be
// closed afterwards.
NATIVE_API int32_t native_arena_attach(int32_t device, int32_t fd, int64_t nbytes, ArenaBlock* block) {
    *block = {};
    block->fd = -1;
    block->device = device;
    ENTER(device);
    const int32_t status = rounded(device, nbytes, &block->mapped);
    if (status != kOk) return status;
    CUmemGenericAllocationHandle handle = 0;
    const CUresult error = driver()->cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t(fd)),
                                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (error != CUDA_SUCCESS) return driver_failed(error, "cuMemImportFromShareableHandle");
    block->handle = handle;
    const int32_t mapped = map_block(block);
    if (mapped != kOk) driver()->cuMemRelease(handle);
    return mapped;
}

// Unmaps a block once the device has finished with it; the memory itself goes with the last process that maps it.
NATIVE_API int32_t native_arena_release(ArenaBlock* block) {
    if (block->pointer == 0) return kOk;
    ENTER(block->device);
    const Driver* cuda = driver();
    cuda->cuCtxSynchronize();  // an error here is the business of whoever queued the work
    cuda->cuMemUnmap(block->pointer, block->mapped);
    cuda->cuMemAddressFree(block->pointer, block->mapped);
    cuda->cuMemRelease(block->handle);
    *block = {};
    return kOk;
}
