// expect: stream:6 stream:7
// Copies on the default stream.
#include <cuda_runtime.h>
__constant__ float table[8];
extern "C" void k_launcher(float* y, const float* x, cudaStream_t stream) {
    cudaMemcpy(y, x, 32, cudaMemcpyDeviceToDevice);
    cudaMemsetAsync(y, 0, 32);
}
