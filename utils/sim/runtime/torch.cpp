// In the checking modes torch's CPU tensors live in the checker's heap, so that the bounds of each are known exactly.
#include <c10/core/CPUAllocator.h>

#include "state.h"

#if SIM_MODE != 0

namespace {

void release(void* pointer) {
    sim::device_free(pointer);
}

struct CheckedAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        void* data = bytes ? sim::device_allocate(bytes) : nullptr;
        if (bytes && !data) throw std::runtime_error("the simulator's checked heap of 16 GiB is full");
        return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void* target, const void* source, std::size_t count) const override {
        default_copy_data(target, source, count);
    }
};

CheckedAllocator allocator;

struct Installed {
    Installed() { c10::SetCPUAllocator(&allocator, 100); }
} installed;

}  // namespace

#endif
