// torch's device functions for the simulator, which has one device.
#pragma once

#include <c10/core/Device.h>
#include <c10/cuda/CUDAException.h>

namespace c10::cuda {
inline DeviceIndex device_count() noexcept {
    return 1;
}
inline DeviceIndex current_device() {
    return 0;
}
inline void set_device(DeviceIndex) {}
inline void device_synchronize() {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
}
inline int warp_size() {
    return 32;
}
}  // namespace c10::cuda
