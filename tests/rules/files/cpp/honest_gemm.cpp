// expect: nothing
// cuBLASLt for a GEMM with its epilogue.
#include <cublasLt.h>
#include <cublas_v2.h>
extern "C" void gemm_launcher(float* c, const float* a, const float* b, int n, void* w, size_t bytes, cudaStream_t stream) {
    static thread_local cublasHandle_t handle = nullptr;
    if (!handle) cublasCreate(&handle);
    cublasSetStream(handle, stream);
    cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH);
    const float one = 1, zero = 0;
    cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &one, a, CUDA_R_32F, n, b, CUDA_R_32F, n, &zero, c,
                 CUDA_R_32F, n, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_GEMM_DEFAULT);
    cublasLtHandle_t lt;
    cublasLtCreate(&lt);
    cublasLtMatmulDesc_t op;
    cublasLtMatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatrixLayout_t la;
    cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, n, n, n);
    cublasLtMatmul(lt, op, &one, a, la, b, la, &zero, c, la, c, la, nullptr, w, bytes, stream);
}
