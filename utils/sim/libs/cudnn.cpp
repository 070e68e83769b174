// cuDNN's legacy calls for the simulator: convolutions, bias and activation by ATen.
#include <cstdio>

#include "convolution.h"

using namespace sim::libs;

namespace {

bool tf32_of(const Convolution& c) {
    return c.math != CUDNN_FMA_MATH;
}

template <class T, class H>
T* as(H handle) {
    return reinterpret_cast<T*>(handle);
}

void blend(const at::Tensor& out, at::Tensor result, const void* alpha, const void* beta) {
    const bool wide = out.scalar_type() == at::kDouble;
    auto scalar = [&](const void* p) {
        return wide ? *static_cast<const double*>(p) : static_cast<double>(*static_cast<const float*>(p));
    };
    result = result.mul(scalar(alpha));
    if (scalar(beta) != 0) result = result.add(out.to(result.scalar_type()), scalar(beta));
    out.copy_(result);
}

struct Activation {
    cudnnActivationMode_t mode = CUDNN_ACTIVATION_IDENTITY;
    double coefficient = 0;
};

at::Tensor activated(const at::Tensor& x, const Activation& a) {
    switch (a.mode) {
        case CUDNN_ACTIVATION_IDENTITY:
            return x;
        case CUDNN_ACTIVATION_RELU:
            return x.relu();
        case CUDNN_ACTIVATION_SIGMOID:
            return x.sigmoid();
        case CUDNN_ACTIVATION_TANH:
            return x.tanh();
        case CUDNN_ACTIVATION_CLIPPED_RELU:
            return x.clamp(0, a.coefficient);
        case CUDNN_ACTIVATION_ELU:
            return at::elu(x, a.coefficient);
        case CUDNN_ACTIVATION_SWISH:
            return at::silu(x);
        default:
            TORCH_CHECK(false, "the simulator's cuDNN has no activation ", static_cast<int>(a.mode));
    }
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
    return status == CUDNN_STATUS_SUCCESS         ? "CUDNN_STATUS_SUCCESS"
           : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == CUDNN_STATUS_BAD_PARAM     ? "CUDNN_STATUS_BAD_PARAM"
                                                  : "CUDNN_STATUS_EXECUTION_FAILED";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
    std::snprintf(message, bytes, "%s", last_message.c_str());
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
    *handle = reinterpret_cast<cudnnHandle_t>(new cudaStream_t(nullptr));
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    delete as<cudaStream_t>(handle);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    *as<cudaStream_t>(handle) = stream;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
    *stream = *as<cudaStream_t>(handle);
    return CUDNN_STATUS_SUCCESS;
}

#define SIM_DESCRIPTOR(NAME, H, T)                           \
    cudnnStatus_t cudnnCreate##NAME##Descriptor(H* handle) { \
        *handle = reinterpret_cast<H>(new T);                \
        return CUDNN_STATUS_SUCCESS;                         \
    }                                                        \
    cudnnStatus_t cudnnDestroy##NAME##Descriptor(H handle) { \
        delete as<T>(handle);                                \
        return CUDNN_STATUS_SUCCESS;                         \
    }
SIM_DESCRIPTOR(Tensor, cudnnTensorDescriptor_t, Tensor)
SIM_DESCRIPTOR(Filter, cudnnFilterDescriptor_t, Tensor)
SIM_DESCRIPTOR(Convolution, cudnnConvolutionDescriptor_t, Convolution)
SIM_DESCRIPTOR(Activation, cudnnActivationDescriptor_t, Activation)
#undef SIM_DESCRIPTOR

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    *as<Tensor>(handle) = {type, {n, c, h, w}, {}};
    as<Tensor>(handle)->packed(format == CUDNN_TENSOR_NHWC);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int n, int c, int h,
                                           int w, int sn, int sc, int sh, int sw) {
    *as<Tensor>(handle) = {type, {n, c, h, w}, {sn, sc, sh, sw}};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t handle, cudnnDataType_t type, int dims,
                                         const int* sizes, const int* strides) {
    *as<Tensor>(handle) = {type, {sizes, sizes + dims}, {strides, strides + dims}};
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t handle, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int dims, const int* sizes) {
    *as<Tensor>(handle) = {type, {sizes, sizes + dims}, {}};
    as<Tensor>(handle)->packed(format == CUDNN_TENSOR_NHWC);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    *as<Tensor>(handle) = {type, {k, c, h, w}, {}};
    as<Tensor>(handle)->packed(format == CUDNN_TENSOR_NHWC);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t handle, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dims, const int* sizes) {
    *as<Tensor>(handle) = {type, {sizes, sizes + dims}, {}};
    as<Tensor>(handle)->packed(format == CUDNN_TENSOR_NHWC);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t handle, int ph, int pw, int sh, int sw,
                                              int dh, int dw, cudnnConvolutionMode_t mode, cudnnDataType_t) {
    Convolution& c = *as<Convolution>(handle);
    c.padding = {ph, pw}, c.stride = {sh, sw}, c.dilation = {dh, dw}, c.mode = mode;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t handle, int dims, const int* padding,
                                              const int* stride, const int* dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t) {
    Convolution& c = *as<Convolution>(handle);
    c.padding.assign(padding, padding + dims), c.stride.assign(stride, stride + dims),
        c.dilation.assign(dilation, dilation + dims), c.mode = mode;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t handle, cudnnMathType_t math) {
    as<Convolution>(handle)->math = math;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t handle, int groups) {
    as<Convolution>(handle)->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t handle, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t, double coefficient) {
    *as<Activation>(handle) = {mode, coefficient};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(const cudnnConvolutionDescriptor_t handle,
                                                    const cudnnTensorDescriptor_t x_handle,
                                                    const cudnnFilterDescriptor_t w_handle, int dims, int* out) {
    const Convolution& c = *as<Convolution>(handle);
    const Tensor &x = *as<Tensor>(x_handle), &w = *as<Tensor>(w_handle);
    out[0] = static_cast<int>(x.sizes[0]);
    out[1] = static_cast<int>(w.sizes[0]);
    for (int i = 2; i < dims; ++i)
        out[i] = static_cast<int>(
            (x.sizes[i] + 2 * c.padding[i - 2] - c.dilation[i - 2] * (w.sizes[i] - 1) - 1) / c.stride[i - 2] + 1);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(const cudnnConvolutionDescriptor_t handle,
                                                    const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
                                                    int* n, int* c, int* h, int* v) {
    int out[4];
    cudnnGetConvolutionNdForwardOutputDim(handle, x, w, 4, out);
    *n = out[0], *c = out[1], *h = out[2], *v = out[3];
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                      const cudnnFilterDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                      const cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                           const cudnnTensorDescriptor_t,
                                                           const cudnnConvolutionDescriptor_t,
                                                           const cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t,
                                                           size_t* bytes) {
    *bytes = 0;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int* count) {
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                     const cudnnFilterDescriptor_t,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t, const int, int* found,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
    *found = 1;
    results[0] = {};
    results[0].algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    results[0].status = CUDNN_STATUS_SUCCESS;
    results[0].determinism = CUDNN_DETERMINISTIC;
    results[0].mathType = as<Convolution>(c)->math;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(cudnnHandle_t h, const cudnnTensorDescriptor_t x,
                                                   const cudnnFilterDescriptor_t w,
                                                   const cudnnConvolutionDescriptor_t c,
                                                   const cudnnTensorDescriptor_t y, const int wanted, int* found,
                                                   cudnnConvolutionFwdAlgoPerf_t* results) {
    return cudnnGetConvolutionForwardAlgorithm_v7(h, x, w, c, y, wanted, found, results);
}
cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t h, const cudnnTensorDescriptor_t x, const void*,
                                                     const cudnnFilterDescriptor_t w, const void*,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, void*, const int wanted,
                                                     int* found, cudnnConvolutionFwdAlgoPerf_t* results, void*,
                                                     size_t) {
    return cudnnGetConvolutionForwardAlgorithm_v7(h, x, w, c, y, wanted, found, results);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                          const cudnnTensorDescriptor_t,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t, const int, int* found,
                                                          cudnnConvolutionBwdDataAlgoPerf_t* results) {
    *found = 1;
    results[0] = {};
    results[0].algo = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
    results[0].status = CUDNN_STATUS_SUCCESS;
    results[0].determinism = CUDNN_DETERMINISTIC;
    results[0].mathType = as<Convolution>(c)->math;
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(cudnnHandle_t h, const cudnnFilterDescriptor_t w,
                                                        const cudnnTensorDescriptor_t dy,
                                                        const cudnnConvolutionDescriptor_t c,
                                                        const cudnnTensorDescriptor_t dx, const int wanted, int* found,
                                                        cudnnConvolutionBwdDataAlgoPerf_t* results) {
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, w, dy, c, dx, wanted, found, results);
}
cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t h, const cudnnFilterDescriptor_t w, const void*,
                                                          const cudnnTensorDescriptor_t dy, const void*,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t dx, void*, const int wanted,
                                                          int* found, cudnnConvolutionBwdDataAlgoPerf_t* results, void*,
                                                          size_t) {
    return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, w, dy, c, dx, wanted, found, results);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t, const void* alpha, const cudnnTensorDescriptor_t x,
                                      const void* x_data, const cudnnFilterDescriptor_t w, const void* w_data,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t, void*, size_t,
                                      const void* beta, const cudnnTensorDescriptor_t y, void* y_data) {
    return guarded([&] {
        const Convolution& conv = *as<Convolution>(c);
        blend(as<Tensor>(y)->over(y_data),
              forward(as<Tensor>(x)->over(x_data), as<Tensor>(w)->over(w_data), conv, tf32_of(conv)), alpha, beta);
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t, const void* alpha, const cudnnFilterDescriptor_t w,
                                           const void* w_data, const cudnnTensorDescriptor_t dy, const void* dy_data,
                                           const cudnnConvolutionDescriptor_t c, cudnnConvolutionBwdDataAlgo_t, void*,
                                           size_t, const void* beta, const cudnnTensorDescriptor_t dx, void* dx_data) {
    return guarded([&] {
        const Convolution& conv = *as<Convolution>(c);
        const Tensor& out = *as<Tensor>(dx);
        blend(out.over(dx_data),
              backward_data(as<Tensor>(dy)->over(dy_data), as<Tensor>(w)->over(w_data), conv, out.sizes, tf32_of(conv)),
              alpha, beta);
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnConvolutionBiasActivationForward(cudnnHandle_t, const void* alpha1, const cudnnTensorDescriptor_t x,
                                                    const void* x_data, const cudnnFilterDescriptor_t w,
                                                    const void* w_data, const cudnnConvolutionDescriptor_t c,
                                                    cudnnConvolutionFwdAlgo_t, void*, size_t, const void* alpha2,
                                                    const cudnnTensorDescriptor_t z, const void* z_data,
                                                    const cudnnTensorDescriptor_t bias, const void* bias_data,
                                                    const cudnnActivationDescriptor_t activation,
                                                    const cudnnTensorDescriptor_t y, void* y_data) {
    return guarded([&] {
        const Convolution& conv = *as<Convolution>(c);
        at::Tensor out = as<Tensor>(y)->over(y_data);
        at::Tensor result = forward(as<Tensor>(x)->over(x_data), as<Tensor>(w)->over(w_data), conv, tf32_of(conv))
                                .mul(*static_cast<const float*>(alpha1));
        const float second = *static_cast<const float*>(alpha2);
        if (second != 0) result = result.add(as<Tensor>(z)->over(z_data).to(result.scalar_type()), second);
        result = result.add(as<Tensor>(bias)->over(bias_data).to(result.scalar_type()));
        out.copy_(activated(result, *as<Activation>(activation)));
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnAddTensor(cudnnHandle_t, const void* alpha, const cudnnTensorDescriptor_t a, const void* a_data,
                             const void* beta, const cudnnTensorDescriptor_t c, void* c_data) {
    return guarded([&] {
        at::Tensor out = as<Tensor>(c)->over(c_data);
        const double x = *static_cast<const float*>(alpha), y = *static_cast<const float*>(beta);
        out.copy_(out.to(at::kFloat).mul(y).add(as<Tensor>(a)->over(a_data).to(at::kFloat), x));
        return CUDNN_STATUS_SUCCESS;
    });
}
cudnnStatus_t cudnnActivationForward(cudnnHandle_t, cudnnActivationDescriptor_t activation, const void* alpha,
                                     const cudnnTensorDescriptor_t x, const void* x_data, const void* beta,
                                     const cudnnTensorDescriptor_t y, void* y_data) {
    return guarded([&] {
        blend(as<Tensor>(y)->over(y_data),
              activated(as<Tensor>(x)->over(x_data).to(at::kFloat), *as<Activation>(activation)), alpha, beta);
        return CUDNN_STATUS_SUCCESS;
    });
}

}  // extern "C"
