#include "context.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <mutex>

namespace {

constexpr int kMaxDevices = 64;

#define NAME_OF(f) NAME_AS_IT_IS(f)
#define NAME_AS_IT_IS(f) #f

struct Opened {
    Driver functions = {};
    bool usable = false;
    char why[256] = "";
};

Opened open_driver() {
    Opened opened;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        std::snprintf(opened.why, sizeof(opened.why), "no CUDA driver: libcuda.so.1 does not load");
        return opened;
    }
#define LOAD(f)                                                                                               \
    opened.functions.f = reinterpret_cast<decltype(opened.functions.f)>(dlsym(library, NAME_OF(f)));          \
    if (opened.functions.f == nullptr) {                                                                      \
        std::snprintf(opened.why, sizeof(opened.why), "the CUDA driver is too old: it lacks %s", NAME_OF(f)); \
        return opened;                                                                                        \
    }
    DRIVER_FUNCTIONS(LOAD)
#undef LOAD
    const CUresult started = opened.functions.cuInit(0);
    if (started != CUDA_SUCCESS) {
        std::snprintf(opened.why, sizeof(opened.why), "the CUDA driver does not start (error %d)", int(started));
        return opened;
    }
    opened.usable = true;
    return opened;
}

// Retained once per device and never released: torch holds the same context for the life of the process.
int32_t primary_context(int32_t device, CUcontext* context) {
    static std::mutex mutex;
    static std::array<CUcontext, kMaxDevices> retained = {};
    if (device < 0 || device >= kMaxDevices) return native_fail(kBadArgument, "there is no CUDA device %d", device);
    const Driver* cuda = driver();
    if (cuda == nullptr) return kNoDriver;
    const std::lock_guard<std::mutex> lock(mutex);
    if (retained[device] == nullptr) {
        CUdevice handle;
        CUresult error = cuda->cuDeviceGet(&handle, device);
        if (error == CUDA_SUCCESS) error = cuda->cuDevicePrimaryCtxRetain(&retained[device], handle);
        if (error != CUDA_SUCCESS) return driver_failed(error, "cuDevicePrimaryCtxRetain");
    }
    *context = retained[device];
    return kOk;
}

std::mutex mailbox_mutex;
void* mailbox_memory = nullptr;
size_t mailbox_bytes = 0;

}  // namespace

const Driver* driver() {
    static const Opened opened = open_driver();
    if (opened.usable) return &opened.functions;
    native_fail(kNoDriver, "%s", opened.why);
    return nullptr;
}

DeviceScope::DeviceScope(int32_t device) {
    CUcontext context = nullptr;
    status = primary_context(device, &context);
    if (status != kOk) return;
    const CUresult error = driver()->cuCtxPushCurrent(context);
    if (error != CUDA_SUCCESS) {
        status = driver_failed(error, "cuCtxPushCurrent");
        return;
    }
    // The same context as far as the driver is concerned; our runtime keeps a note of its own of the current device.
    cudaSetDevice(device);
}

DeviceScope::~DeviceScope() {
    CUcontext ours;
    if (status == kOk) driver()->cuCtxPopCurrent(&ours);
}

int32_t runtime_failed(cudaError_t error, const char* call) {
    cudaGetLastError();  // our runtime's note of it: reported here, it must not be found again by the next call
    const int32_t code = error == cudaErrorMemoryAllocation ? int32_t(kOutOfMemory) : int32_t(error);
    return native_fail(code, "%s: %s, in %.120s", cudaGetErrorName(error), cudaGetErrorString(error), call);
}

int32_t driver_failed(CUresult error, const char* call) {
    const char *name = "unknown error", *words = "";
    driver()->cuGetErrorName(error, &name);
    driver()->cuGetErrorString(error, &words);
    const int32_t code = error == CUDA_ERROR_OUT_OF_MEMORY ? int32_t(kOutOfMemory) : int32_t(error);
    return native_fail(code, "%s: %s, in %s", name, words, call);
}

Mailbox::Mailbox(size_t bytes) : memory(nullptr), status(kOk) {
    mailbox_mutex.lock();
    if (mailbox_bytes < bytes) {
        if (mailbox_memory != nullptr) cudaFreeHost(mailbox_memory);
        mailbox_memory = nullptr;
        mailbox_bytes = 0;
        // Portable: the same pointer serves every device's context.
        const cudaError_t error = cudaHostAlloc(&mailbox_memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
        if (error != cudaSuccess) {
            status = runtime_failed(error, "cudaHostAlloc");
            mailbox_memory = nullptr;
            return;
        }
        mailbox_bytes = bytes;
    }
    memory = mailbox_memory;
}

Mailbox::~Mailbox() {
    mailbox_mutex.unlock();
}

int multiprocessors(int32_t device) {
    int count = 1;
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return count;
}
