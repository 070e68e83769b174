// expect: nothing
// cuDNN for a convolution with bias and activation, and through its graph interface.
#include <cudnn.h>
void f(cudnnTensorDescriptor_t xd, cudnnFilterDescriptor_t wd, cudnnConvolutionDescriptor_t cd, const float* x,
       const float* w, float* y, void* space, size_t bytes, cudaStream_t stream) {
    cudnnHandle_t handle;
    cudnnCreate(&handle);
    cudnnSetStream(handle, stream);
    const float one = 1, zero = 0;
    cudnnConvolutionForward(handle, &one, xd, x, wd, w, cd, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, space, bytes, &zero, xd, y);
    cudnnConvolutionBackwardData(handle, &one, wd, w, xd, x, cd, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, space, bytes, &zero, xd, y);
    cudnnBackendDescriptor_t conv, epilogue;
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &conv);
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, &epilogue);
}
