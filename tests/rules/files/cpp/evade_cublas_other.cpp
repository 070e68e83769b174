// expect: library:7 library:8
// cuBLAS for something else than GEMM.
#include <cublas_v2.h>
void f(cublasHandle_t handle, float* x, float* y, cudaStream_t stream) {
    float r;
    cublasSetStream(handle, stream);
    cublasSnrm2(handle, 8, x, 1, &r);
    cublasSaxpy(handle, 8, &r, x, 1, y, 1);
}
