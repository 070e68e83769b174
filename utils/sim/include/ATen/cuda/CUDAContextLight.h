// torch's CUDA context for the simulator.
#pragma once

#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

namespace at::cuda {

inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex = 0) {
    static cudaDeviceProp properties = [] {
        cudaDeviceProp p;
        cudaGetDeviceProperties(&p, 0);
        return p;
    }();
    return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() {
    return getDeviceProperties();
}
inline int warp_size() {
    return 32;
}
inline bool is_available() {
    return true;
}
inline int64_t getNumGPUs() {
    return 1;
}
inline c10::Allocator* getCUDADeviceAllocator() {
    return c10::cuda::CUDACachingAllocator::get();
}
inline cublasHandle_t getCurrentCUDABlasHandle() {
    static cublasHandle_t handle = [] {
        cublasHandle_t h = nullptr;
        cublasCreate(&h);
        return h;
    }();
    return handle;
}
inline cublasLtHandle_t getCurrentCUDABlasLtHandle() {
    static cublasLtHandle_t handle = [] {
        cublasLtHandle_t h = nullptr;
        cublasLtCreate(&h);
        return h;
    }();
    return handle;
}
inline void stream_synchronize(cudaStream_t) {}

}  // namespace at::cuda
