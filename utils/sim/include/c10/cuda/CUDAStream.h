// torch's CUDA streams for the simulator: there is one, and it is synchronous.
#pragma once

#include <c10/core/Device.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace c10::cuda {

class CUDAStream {
  public:
    enum Unchecked { UNCHECKED };
    CUDAStream() = default;
    operator cudaStream_t() const { return nullptr; }
    cudaStream_t stream() const { return nullptr; }
    DeviceIndex device_index() const { return 0; }
    Device device() const { return Device(DeviceType::CPU); }
    int64_t id() const { return 0; }
    bool query() const { return true; }
    void synchronize() const {}
    int priority() const { return 0; }
    bool operator==(const CUDAStream&) const { return true; }
    bool operator!=(const CUDAStream&) const { return false; }
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) {
    return {};
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) {
    return {};
}
inline CUDAStream getStreamFromPool(bool = false, DeviceIndex = -1) {
    return {};
}
inline CUDAStream getStreamFromPool(int, DeviceIndex = -1) {
    return {};
}
inline CUDAStream getStreamFromExternal(cudaStream_t, DeviceIndex) {
    return {};
}
inline void setCurrentCUDAStream(CUDAStream) {}

}  // namespace c10::cuda

namespace at::cuda {
using c10::cuda::CUDAStream;
using c10::cuda::getCurrentCUDAStream;
using c10::cuda::getDefaultCUDAStream;
using c10::cuda::getStreamFromExternal;
using c10::cuda::getStreamFromPool;
using c10::cuda::setCurrentCUDAStream;
}  // namespace at::cuda
