// torch's device and stream guards for the simulator, which has one device: they keep nothing.
#pragma once

#include <c10/cuda/CUDAStream.h>

#include <optional>

namespace c10::cuda {

struct CUDAGuard {
    explicit CUDAGuard(DeviceIndex) {}
    explicit CUDAGuard(Device) {}
    ~CUDAGuard() {}
    void set_device(Device) {}
    void reset_device(Device) {}
    void set_index(DeviceIndex) {}
    Device original_device() const { return Device(DeviceType::CPU); }
    Device current_device() const { return Device(DeviceType::CPU); }
};
struct OptionalCUDAGuard {
    OptionalCUDAGuard() {}
    explicit OptionalCUDAGuard(std::optional<Device>) {}
    explicit OptionalCUDAGuard(std::optional<DeviceIndex>) {}
    explicit OptionalCUDAGuard(Device) {}
    ~OptionalCUDAGuard() {}
    void set_device(Device) {}
    void reset() {}
};
struct CUDAStreamGuard {
    explicit CUDAStreamGuard(CUDAStream) {}
    ~CUDAStreamGuard() {}
};
struct OptionalCUDAStreamGuard {
    OptionalCUDAStreamGuard() {}
    explicit OptionalCUDAStreamGuard(CUDAStream) {}
    ~OptionalCUDAStreamGuard() {}
};

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStreamGuard;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::OptionalCUDAStreamGuard;
}  // namespace at::cuda
