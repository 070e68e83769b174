// Included before every .cu file, as nvcc includes its own: the language, then the macros by which code asks for it.
#pragma once

#include <cuda_runtime.h>
#include <sim/ptx.h>

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define __CUDA_ARCH_FEAT_SM90_ALL 1
#define __CUDA_ARCH_LIST__ 900
