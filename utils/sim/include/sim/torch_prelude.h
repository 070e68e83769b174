// Included before every binding: torch's headers as they are, then the names by which a binding asks for CUDA, which
// here mean the CPU tensors of the simulated device. Torch headers that a workspace uses beyond these two are added by
// the build, since none may be read after the names have changed.
#pragma once

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#ifdef SIM_MORE_TORCH_HEADERS
#include SIM_MORE_TORCH_HEADERS
#endif

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cudnn/Handle.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime.h>

#define is_cuda() is_cpu()
#define kCUDA kCPU
#define CUDA CPU
