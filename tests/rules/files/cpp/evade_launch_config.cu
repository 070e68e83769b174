// expect: stream:6
// A launch configuration without a stream.
#include <cuda_runtime.h>
__global__ void k(float* x) { x[0] = 1; }
extern "C" void k_launcher(float* x, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1);
    config.blockDim = dim3(32);
    cudaLaunchKernelEx(&config, k, x);
}
