// torch's checks of CUDA library calls for the simulator.
#pragma once

#include <c10/cuda/CUDAException.h>

#define TORCH_CUDABLAS_CHECK(expression)                                                               \
    do {                                                                                               \
        const auto sim_status = (expression);                                                          \
        TORCH_CHECK(static_cast<int>(sim_status) == 0, "cuBLAS error ", static_cast<int>(sim_status)); \
    } while (0)
#define AT_CUDNN_CHECK(expression, ...)                                                               \
    do {                                                                                              \
        const auto sim_status = (expression);                                                         \
        TORCH_CHECK(static_cast<int>(sim_status) == 0, "cuDNN error ", static_cast<int>(sim_status)); \
    } while (0)
