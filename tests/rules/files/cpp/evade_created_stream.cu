// expect: stream:7 stream:8
// A stream created in C++.
#include <cuda_runtime.h>
__global__ void k(float* x) { x[0] = 1; }
extern "C" void k_launcher(float* x, cudaStream_t stream) {
    cudaStream_t mine;
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    k<<<1, 32, 0, mine>>>(x);
}
