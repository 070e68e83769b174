// cuDNN for the simulator: convolutions by ATen, through the legacy calls and through the backend's operation graphs
// (convolution forward and backward-data, pointwise operations).
#include "tensors.h"

#include <cudnn.h>
#include <torch/types.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace sim::libs;

namespace {

std::string last_message;

bool dtype_of(cudnnDataType_t type, at::ScalarType* out) {
    switch (type) {
        case CUDNN_DATA_FLOAT:
            *out = at::kFloat;
            return true;
        case CUDNN_DATA_DOUBLE:
            *out = at::kDouble;
            return true;
        case CUDNN_DATA_HALF:
            *out = at::kHalf;
            return true;
        case CUDNN_DATA_BFLOAT16:
            *out = at::kBFloat16;
            return true;
        case CUDNN_DATA_INT32:
            *out = at::kInt;
            return true;
        case CUDNN_DATA_BOOLEAN:
            *out = at::kBool;
            return true;
        default:
            return false;
    }
}

template <class F>
cudnnStatus_t guarded(F work) {
    try {
        at::NoGradGuard no_grad;
        return work();
    } catch (const std::exception& error) {
        last_message = error.what();
        return CUDNN_STATUS_EXECUTION_FAILED;
    }
}

struct Tensor {
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    std::vector<int64_t> sizes, strides;
    at::Tensor over(const void* data) const {
        at::ScalarType dtype{};
        TORCH_CHECK(dtype_of(type, &dtype), "the simulator's cuDNN has no data type ", static_cast<int>(type));
        return view(data, sizes, strides, dtype);
    }
    void packed(bool channels_last) {
        strides.assign(sizes.size(), 1);
        int64_t stride = 1;
        if (channels_last) {
            strides[1] = stride;
            stride *= sizes[1];
            for (size_t i = sizes.size() - 1; i >= 2; --i) strides[i] = stride, stride *= sizes[i];
            strides[0] = stride;
        } else {
            for (size_t i = sizes.size(); i-- > 0;) strides[i] = stride, stride *= sizes[i];
        }
    }
};

struct Convolution {
    std::vector<int64_t> padding, stride, dilation;
    int64_t groups = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
};

at::Tensor wide(const at::Tensor& x, bool allow_tf32) {
    const at::Tensor w = x.to(x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
    return allow_tf32 && x.scalar_type() == at::kFloat ? tf32(w) : w;
}

at::Tensor forward(const at::Tensor& x, at::Tensor w, const Convolution& c, bool allow_tf32) {
    if (c.mode == CUDNN_CONVOLUTION) {
        std::vector<int64_t> dims;
        for (int64_t i = 2; i < w.dim(); ++i) dims.push_back(i);
        w = w.flip(dims);
    }
    return at::convolution(wide(x, allow_tf32), wide(w, allow_tf32), {}, c.stride, c.padding, c.dilation, false,
                           std::vector<int64_t>(c.stride.size(), 0), c.groups);
}

at::Tensor backward_data(const at::Tensor& dy, const at::Tensor& w, const Convolution& c, at::IntArrayRef dx_sizes,
                         bool allow_tf32) {
    std::vector<int64_t> extra;
    for (size_t i = 0; i < c.stride.size(); ++i) {
        const int64_t smallest =
            (dy.size(i + 2) - 1) * c.stride[i] - 2 * c.padding[i] + c.dilation[i] * (w.size(i + 2) - 1) + 1;
        extra.push_back(dx_sizes[i + 2] - smallest);
    }
    return at::convolution(wide(dy, allow_tf32), wide(w, allow_tf32), {}, c.stride, c.padding, c.dilation, true, extra,
                           c.groups);
}

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

// ---- the backend: descriptors with attributes, and graphs of operations
// ------------------------------------------------

namespace {

struct Attribute {
    cudnnBackendAttributeType_t type = CUDNN_TYPE_VOID_PTR;
    int64_t count = 0;
    std::vector<char> bytes;
};

size_t width(cudnnBackendAttributeType_t type) {
    switch (type) {
        case CUDNN_TYPE_BOOLEAN:
            return sizeof(bool);
        case CUDNN_TYPE_CHAR:
            return 1;
        case CUDNN_TYPE_INT64:
        case CUDNN_TYPE_DOUBLE:
        case CUDNN_TYPE_VOID_PTR:
        case CUDNN_TYPE_HANDLE:
        case CUDNN_TYPE_BACKEND_DESCRIPTOR:
            return 8;
        default:
            return 4;
    }
}

struct Descriptor {
    cudnnBackendDescriptorType_t type;
    std::map<int, Attribute> attributes;

    template <class T>
    std::vector<T> list(int name) const {
        auto found = attributes.find(name);
        if (found == attributes.end()) return {};
        std::vector<T> values(static_cast<size_t>(found->second.count));
        for (size_t i = 0; i < values.size(); ++i) {
            const char* from = found->second.bytes.data() + i * width(found->second.type);
            T value{};
            std::memcpy(&value, from, std::min(sizeof(T), width(found->second.type)));
            values[i] = value;
        }
        return values;
    }
    template <class T>
    T get(int name, T otherwise) const {
        const auto values = list<T>(name);
        return values.empty() ? otherwise : values[0];
    }
    const Descriptor* link(int name) const {
        return reinterpret_cast<const Descriptor*>(get<cudnnBackendDescriptor_t>(name, nullptr));
    }
    // A scalar, stored as float or double.
    double number(int name, double otherwise) const {
        auto found = attributes.find(name);
        if (found == attributes.end()) return otherwise;
        return found->second.type == CUDNN_TYPE_DOUBLE ? get<double>(name, 0)
                                                       : static_cast<double>(get<float>(name, 0));
    }
};

Descriptor* of(cudnnBackendDescriptor_t d) {
    return reinterpret_cast<Descriptor*>(d);
}

std::vector<const Descriptor*> operations(const Descriptor* graph) {
    std::vector<const Descriptor*> out;
    for (auto each : graph->list<cudnnBackendDescriptor_t>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) out.push_back(of(each));
    return out;
}

bool pointwise_known(int mode) {
    switch (mode) {
        case CUDNN_POINTWISE_ADD:
        case CUDNN_POINTWISE_MUL:
        case CUDNN_POINTWISE_SUB:
        case CUDNN_POINTWISE_DIV:
        case CUDNN_POINTWISE_MAX:
        case CUDNN_POINTWISE_MIN:
        case CUDNN_POINTWISE_IDENTITY:
        case CUDNN_POINTWISE_RELU_FWD:
        case CUDNN_POINTWISE_SIGMOID_FWD:
        case CUDNN_POINTWISE_TANH_FWD:
        case CUDNN_POINTWISE_GELU_FWD:
        case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        case CUDNN_POINTWISE_SWISH_FWD:
        case CUDNN_POINTWISE_ELU_FWD:
        case CUDNN_POINTWISE_SOFTPLUS_FWD:
        case CUDNN_POINTWISE_EXP:
        case CUDNN_POINTWISE_SQRT:
        case CUDNN_POINTWISE_RSQRT:
        case CUDNN_POINTWISE_ABS:
        case CUDNN_POINTWISE_NEG:
            return true;
        default:
            return false;
    }
}

bool graph_known(const Descriptor* graph) {
    for (const Descriptor* op : operations(graph)) {
        if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
            op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
            continue;
        if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
            const Descriptor* pointwise = op->link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
            if (pointwise && pointwise_known(pointwise->get<int32_t>(CUDNN_ATTR_POINTWISE_MODE, -1))) continue;
        }
        last_message = "the simulator's cuDNN does not know an operation of this graph";
        return false;
    }
    return true;
}

Tensor tensor_of(const Descriptor* d) {
    return {static_cast<cudnnDataType_t>(d->get<int32_t>(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)),
            d->list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), d->list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES)};
}

Convolution convolution_of(const Descriptor* d) {
    Convolution c;
    c.padding = d->list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    c.stride = d->list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    c.dilation = d->list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    c.mode =
        static_cast<cudnnConvolutionMode_t>(d->get<int32_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION));
    return c;
}

at::Tensor pointwise(int mode, const Descriptor* settings, const at::Tensor& x, const at::Tensor& b) {
    switch (mode) {
        case CUDNN_POINTWISE_ADD:
            return x + b;
        case CUDNN_POINTWISE_MUL:
            return x * b;
        case CUDNN_POINTWISE_SUB:
            return x - b;
        case CUDNN_POINTWISE_DIV:
            return x / b;
        case CUDNN_POINTWISE_MAX:
            return at::maximum(x, b);
        case CUDNN_POINTWISE_MIN:
            return at::minimum(x, b);
        case CUDNN_POINTWISE_IDENTITY:
            return x;
        case CUDNN_POINTWISE_RELU_FWD: {
            const double low = settings->number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0),
                         high = settings->number(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, INFINITY),
                         slope = settings->number(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
            return at::where(x < low, (x - low) * slope + low, x).clamp_max(high);
        }
        case CUDNN_POINTWISE_SIGMOID_FWD:
            return x.sigmoid();
        case CUDNN_POINTWISE_TANH_FWD:
            return x.tanh();
        case CUDNN_POINTWISE_GELU_FWD:
            return at::gelu(x);
        case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
            return at::gelu(x, "tanh");
        case CUDNN_POINTWISE_SWISH_FWD:
            return x * (x * settings->number(CUDNN_ATTR_POINTWISE_SWISH_BETA, 1)).sigmoid();
        case CUDNN_POINTWISE_ELU_FWD:
            return at::elu(x, settings->number(CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1));
        case CUDNN_POINTWISE_SOFTPLUS_FWD:
            return at::softplus(x, settings->number(CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1));
        case CUDNN_POINTWISE_EXP:
            return x.exp();
        case CUDNN_POINTWISE_SQRT:
            return x.sqrt();
        case CUDNN_POINTWISE_RSQRT:
            return x.rsqrt();
        case CUDNN_POINTWISE_ABS:
            return x.abs();
        case CUDNN_POINTWISE_NEG:
            return -x;
        default:
            TORCH_CHECK(false, "the simulator's cuDNN has no pointwise mode ", mode);
    }
}

// Runs the operations in the order given; what a virtual tensor holds is kept by its descriptor.
void run_graph(const Descriptor* graph, const std::map<int64_t, void*>& pointers) {
    std::map<const Descriptor*, at::Tensor> held;
    auto read = [&](const Descriptor* d) {
        auto found = held.find(d);
        if (found != held.end()) return found->second;
        const auto place = pointers.find(d->get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0));
        TORCH_CHECK(place != pointers.end(), "a tensor of the graph has no pointer in the variant pack");
        return tensor_of(d).over(place->second);
    };
    auto write = [&](const Descriptor* d, const at::Tensor& value) {
        if (d->get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, false)) {
            held[d] = value;
            return;
        }
        read(d).copy_(value);
    };
    for (const Descriptor* op : operations(graph)) {
        if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
            const Convolution c = convolution_of(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
            const Descriptor* y = op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
            const at::Tensor x = read(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X)),
                             w = read(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
            Convolution grouped = c;
            grouped.groups = x.size(1) / w.size(1);
            at::Tensor result =
                forward(x, w, grouped, false).mul(op->number(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1));
            const double beta = op->number(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0);
            if (beta != 0) result = result.add(read(y).to(result.scalar_type()), beta);
            write(y, result);
        } else if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
            Convolution c = convolution_of(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
            const Descriptor* dx = op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
            const at::Tensor dy = read(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY)),
                             w = read(op->link(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
            const auto sizes = tensor_of(dx).sizes;
            c.groups = sizes[1] / w.size(1);
            at::Tensor result = backward_data(dy, w, c, sizes, false)
                                    .mul(op->number(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1));
            write(dx, result);
        } else {
            const Descriptor* settings = op->link(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
            at::Tensor x = read(op->link(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)).to(at::kFloat);
            at::Tensor b;
            if (const Descriptor* second = op->link(CUDNN_ATTR_OPERATION_POINTWISE_BDESC))
                b = read(second).to(at::kFloat).mul(op->number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1));
            x = x.mul(op->number(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 1));
            write(op->link(CUDNN_ATTR_OPERATION_POINTWISE_YDESC),
                  pointwise(settings->get<int32_t>(CUDNN_ATTR_POINTWISE_MODE, -1), settings, x, b));
        }
    }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* out) {
    *out = reinterpret_cast<cudnnBackendDescriptor_t>(new Descriptor{type, {}});
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
    delete of(d);
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t) {
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* values) {
    Attribute& a = of(d)->attributes[name];
    a.type = type;
    a.count = count;
    const char* from = static_cast<const char*>(values);
    a.bytes.assign(from, from + static_cast<size_t>(count) * width(type));
    return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
    Descriptor* self = of(d);
    if (self->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR && !graph_known(self)) return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted, int64_t* count, void* values) {
    Descriptor* self = of(d);
    int64_t ignored = 0;
    if (!count) count = &ignored;
    *count = 0;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        // One way to run any graph we know.
        *count = 1;
        if (wanted >= 1 && values) {
            Descriptor* made = of(static_cast<cudnnBackendDescriptor_t*>(values)[0]);
            made->attributes = {};
            const cudnnBackendDescriptor_t graph =
                self->get<cudnnBackendDescriptor_t>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, nullptr);
            cudnnBackendSetAttribute(reinterpret_cast<cudnnBackendDescriptor_t>(made),
                                     CUDNN_ATTR_ENGINE_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
        }
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE || name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE ||
        name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE || name == CUDNN_ATTR_ENGINE_KNOB_INFO)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE) {
        *count = 1;
        if (values) *static_cast<int64_t*>(values) = 0;
        return CUDNN_STATUS_SUCCESS;
    }
    auto found = self->attributes.find(name);
    if (found == self->attributes.end() || found->second.type != type) return CUDNN_STATUS_BAD_PARAM;
    *count = found->second.count;
    if (values)
        std::memcpy(values, found->second.bytes.data(),
                    std::min(found->second.bytes.size(), static_cast<size_t>(wanted) * width(type)));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
    return guarded([&] {
        const Descriptor* configuration = of(plan)->link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        const Descriptor* graph = configuration ? configuration->link(CUDNN_ATTR_ENGINE_OPERATION_GRAPH) : nullptr;
        if (!graph && configuration)
            if (const Descriptor* engine = configuration->link(CUDNN_ATTR_ENGINECFG_ENGINE))
                graph = engine->link(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
        TORCH_CHECK(graph != nullptr, "the plan has no operation graph");
        const auto ids = of(pack)->list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
        const auto data = of(pack)->list<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
        std::map<int64_t, void*> pointers;
        for (size_t i = 0; i < ids.size() && i < data.size(); ++i) pointers[ids[i]] = data[i];
        run_graph(graph, pointers);
        return CUDNN_STATUS_SUCCESS;
    });
}
}
