// expect: library:6 library:8
// cuDNN for something else than convolution.
#include <cudnn.h>
void f(cudnnHandle_t handle, cudnnTensorDescriptor_t d, const float* x, float* y) {
    float one = 1, zero = 0;
    cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, d, x, &zero, d, y);
    cudnnBackendDescriptor_t op;
    cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &op);
}
