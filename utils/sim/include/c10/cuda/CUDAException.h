// torch's checks of CUDA calls for the simulator.
#pragma once

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#define C10_CUDA_CHECK(expression)                                                                                \
    do {                                                                                                          \
        const cudaError_t sim_error = (expression);                                                               \
        TORCH_CHECK(sim_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(sim_error), " at " __FILE__ ":", \
                    __LINE__);                                                                                    \
    } while (0)
#define C10_CUDA_CHECK_WARN(expression) ((void)(expression))
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define C10_CUDA_ERROR_HANDLED(expression) (expression)
#define AT_CUDA_CHECK(expression) C10_CUDA_CHECK(expression)
