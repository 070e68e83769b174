// expect: nothing
// A launch through a configuration, and one asked for its occupancy only.
#include <cuda_runtime.h>
__global__ void k(float* x) { x[0] = 1; }
extern "C" void k_launcher(float* x, cudaStream_t stream) {
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(4);
    config.blockDim = dim3(32);
    config.stream = stream;
    cudaLaunchKernelEx(&config, k, x);
    cudaLaunchConfig_t inline_config = {dim3(1), dim3(32), 0, stream, nullptr, 0};
    cudaLaunchKernelEx(&inline_config, k, x);
    void* arguments[] = {&x};
    cudaLaunchCooperativeKernel((const void*)k, dim3(1), dim3(32), arguments, 0, stream);
}
int occupancy() {
    cudaLaunchConfig_t config = {};
    int clusters = 0;
    cudaOccupancyMaxActiveClusters(&clusters, k, &config);
    return clusters;
}
