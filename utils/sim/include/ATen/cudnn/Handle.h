// torch's cuDNN handle for the simulator.
#pragma once

#include <cudnn.h>

namespace at::native {
inline cudnnHandle_t getCudnnHandle() {
    static cudnnHandle_t handle = [] {
        cudnnHandle_t h = nullptr;
        cudnnCreate(&h);
        return h;
    }();
    return handle;
}
}  // namespace at::native
