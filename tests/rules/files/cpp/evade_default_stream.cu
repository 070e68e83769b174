// expect: stream:6 stream:7 stream:8
// Launches on the default stream.
#include <cuda_runtime.h>
__global__ void k(float* x) { x[0] = 1; }
extern "C" void k_launcher(float* x, cudaStream_t stream) {
    k<<<1, 32>>>(x);
    k<<<1, 32, 0, 0>>>(x);
    k<<<1, 32, 0, nullptr>>>(x);
}
