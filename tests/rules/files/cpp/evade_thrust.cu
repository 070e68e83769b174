// expect: library:5 library:7
// Whole algorithms of another library.
#include <cuda_runtime.h>
#include <cub/cub.cuh>
#include <thrust/sort.h>
extern "C" void sum_launcher(float* y, const float* x, int n, void* t, size_t b, cudaStream_t stream) {
    cub::DeviceReduce::Sum(t, b, x, y, n, stream);
}
