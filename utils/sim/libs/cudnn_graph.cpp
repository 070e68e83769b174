// cuDNN's backend for the simulator: descriptors with attributes, and graphs of operations (convolution forward and
// backward-data, pointwise operations), each computed by ATen.
#include <cstring>
#include <map>

#include "convolution.h"

using namespace sim::libs;

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
