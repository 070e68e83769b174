// expect: stream:6
// A handle that never gets the caller's stream.
#include <cublas_v2.h>
extern "C" void gemm_launcher(float* c, const float* a, const float* b, int n, cudaStream_t stream) {
    static cublasHandle_t handle = nullptr;
    if (!handle) cublasCreate(&handle);
    float one = 1, zero = 0;
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, b, n, &zero, c, n);
}
