// Convolution with a fused bias through cuDNN's graph API: y = conv(x, w) + bias.
//
// The backend API alone (cudnn_backend*), no cudnn-frontend. The graph is two operations, convolution into a virtual
// tensor and pointwise add into y; cuDNN lists the engine configurations that run it as one, best guess first, and each
// becomes an execution plan. Tensors are described by sizes and strides in the order (N, C, spatial...), so any layout
// can be said; channels-last (C stride 1) is the one with the fast tensor-core kernels.
//
// No torch here: handles live per device, scratch memory comes from the caller.
#pragma once

#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "autotune.h"
#include "check.h"

namespace kernels {

[[noreturn]] __attribute__((cold, noinline)) inline void throw_cudnn_error(cudnnStatus_t status, const char* expression,
                                                                           const char* file, int line) {
    std::array<char, 512> meaning{};
    cudnnGetLastErrorString(meaning.data(), meaning.size());
    throw_api_error("cuDNN", expression, cudnnGetErrorString(status), meaning.data(), file, line);
}

}  // namespace kernels

// Throws unless the cuDNN call returned CUDNN_STATUS_SUCCESS.
#define CUDNN_CHECK(expression)                                                                \
    do {                                                                                       \
        const cudnnStatus_t cudnn_check_status = (expression);                                 \
        if (__builtin_expect(cudnn_check_status != CUDNN_STATUS_SUCCESS, 0)) {                 \
            ::kernels::throw_cudnn_error(cudnn_check_status, #expression, __FILE__, __LINE__); \
        }                                                                                      \
    } while (0)

namespace kernels {

// A dense tensor of up to five dimensions, (N, C, H, W) or (N, C, D, H, W).
struct TensorLayout {
    std::vector<int64_t> sizes;
    std::vector<int64_t> strides;
};

// Channels last: C has stride 1, then W, H (, D), N.
inline TensorLayout channels_last(std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size());
    int64_t stride = 1;
    strides[1] = stride;
    stride *= sizes[1];
    for (size_t i = sizes.size() - 1; i >= 2; --i) {
        strides[i] = stride;
        stride *= sizes[i];
    }
    strides[0] = stride;
    return {std::move(sizes), std::move(strides)};
}

// Row-major in the order of the sizes: NCHW.
inline TensorLayout channels_first(std::vector<int64_t> sizes) {
    std::vector<int64_t> strides(sizes.size());
    int64_t stride = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= sizes[i];
    }
    return {std::move(sizes), std::move(strides)};
}

// y: (N, K, out...), x: (N, C, in...), w: (K, C, window...); stride and padding per spatial dimension. `alignment` in
// bytes holds for every pointer. allow_tf32 says whether fp32 operands may be rounded to TF32 for the tensor cores.
struct Convolution {
    TensorLayout x, w, y;
    std::vector<int64_t> stride, padding;
    cudnnDataType_t type;
    int64_t alignment;
    bool allow_tf32;
};

struct ConvolutionOperands {
    const void* x;
    const void* w;
    const void* bias;  // K values
    void* y;
    void* workspace;
};

namespace detail {

// Owner of one backend descriptor. set() takes arrays, as the API does.
class CudnnDescriptor {
  public:
    explicit CudnnDescriptor(cudnnBackendDescriptorType_t type) {
        CUDNN_CHECK(cudnnBackendCreateDescriptor(type, &descriptor_));
    }
    ~CudnnDescriptor() {
        if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
    }
    CudnnDescriptor(CudnnDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
    CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    CudnnDescriptor(const CudnnDescriptor&) = delete;
    CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

    cudnnBackendDescriptor_t get() const { return descriptor_; }

    template <typename T>
    void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const std::vector<T>& values) {
        CUDNN_CHECK(
            cudnnBackendSetAttribute(descriptor_, name, type, static_cast<int64_t>(values.size()), values.data()));
    }
    template <typename T>
    void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
        CUDNN_CHECK(cudnnBackendSetAttribute(descriptor_, name, type, 1, &value));
    }
    void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
        set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
    }
    void finalize() { CUDNN_CHECK(cudnnBackendFinalize(descriptor_)); }

  private:
    cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// The names under which a call's pointers are handed to a plan.
enum TensorId : int64_t { kX = 1, kW = 2, kConvolved = 3, kBias = 4, kY = 5 };

inline CudnnDescriptor tensor_descriptor(int64_t id, const TensorLayout& layout, const Convolution& problem,
                                         bool is_virtual = false) {
    CudnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, problem.type);
    tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, layout.sizes);
    tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, layout.strides);
    tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, problem.alignment);
    tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
    tensor.finalize();
    return tensor;
}

// An operation graph with the descriptors it was made of: the API does not say that it may outlive them.
struct ConvolutionGraph {
    std::vector<CudnnDescriptor> parts;
    CudnnDescriptor graph;
};

// conv(x, w) -> virtual, virtual + bias -> y.
inline ConvolutionGraph convolution_graph(cudnnHandle_t handle, const Convolution& problem) {
    const auto spatial = static_cast<int64_t>(problem.stride.size());
    std::vector<int64_t> bias_sizes(problem.y.sizes.size(), 1);
    bias_sizes[1] = problem.y.sizes[1];

    CudnnDescriptor x = tensor_descriptor(kX, problem.x, problem);
    CudnnDescriptor w = tensor_descriptor(kW, problem.w, problem);
    CudnnDescriptor convolved = tensor_descriptor(kConvolved, problem.y, problem, true);
    CudnnDescriptor bias = tensor_descriptor(kBias, channels_last(bias_sizes), problem);
    CudnnDescriptor y = tensor_descriptor(kY, problem.y, problem);

    CudnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, spatial);
    convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, std::vector<int64_t>(spatial, 1));
    convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, problem.stride);
    convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, problem.padding);
    convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, problem.padding);
    convolution.finalize();

    CudnnDescriptor convolve(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, convolved);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f);
    convolve.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
    convolve.finalize();

    CudnnDescriptor addition(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    addition.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
    addition.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    addition.finalize();

    CudnnDescriptor add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, addition);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, convolved);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, bias);
    add.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add.finalize();

    CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              std::vector<cudnnBackendDescriptor_t>{convolve.get(), add.get()});
    graph.finalize();

    ConvolutionGraph result{{}, std::move(graph)};
    for (CudnnDescriptor* part : {&x, &w, &convolved, &bias, &y, &convolution, &convolve, &addition, &add}) {
        result.parts.push_back(std::move(*part));
    }
    return result;
}

// May this engine be used? Never one whose result changes from run to run, or that narrows fp32 inputs below TF32.
inline bool is_acceptable(const CudnnDescriptor& configuration, bool allow_tf32) {
    CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw_engine = engine.get();
    int64_t count = 0;
    CUDNN_CHECK(cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &raw_engine));
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    CUDNN_CHECK(cudnnBackendGetAttribute(raw_engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                         static_cast<int64_t>(notes.size()), &count, notes.data()));
    return std::none_of(notes.begin(), notes.begin() + count, [&](cudnnBackendNumericalNote_t note) {
        return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC || note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
               note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
               (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && !allow_tf32);
    });
}

// Engine configurations of one heuristic mode, best guess first; empty when the mode has nothing to say.
inline std::vector<CudnnDescriptor> engine_configurations(const CudnnDescriptor& graph, cudnnBackendHeurMode_t mode) {
    std::vector<CudnnDescriptor> configurations;
    CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return configurations;
    int64_t available = 0;
    CUDNN_CHECK(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         0, &available, nullptr));
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < available; ++i) {
        configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        raw.push_back(configurations.back().get());
    }
    int64_t filled = 0;
    CUDNN_CHECK(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         available, &filled, raw.data()));
    while (static_cast<int64_t>(configurations.size()) > filled) configurations.pop_back();
    return configurations;
}

// A compiled way to run the graph, the scratch memory it wants, and what it was made of.
struct ConvolutionPlan {
    std::shared_ptr<const ConvolutionGraph> graph;
    CudnnDescriptor configuration;
    CudnnDescriptor plan;
    int64_t workspace_bytes;
};

// Plans for scratch memory beyond this are not considered: they convert whole tensors to another layout and back.
constexpr int64_t kMaxConvolutionWorkspaceBytes = int64_t{128} << 20;

// Up to `limit` plans, best guess first. The fallback engines are asked last: slow, but there is one for every shape.
inline std::vector<ConvolutionPlan> convolution_plans(cudnnHandle_t handle, const Convolution& problem, size_t limit) {
    const auto graph = std::make_shared<const ConvolutionGraph>(convolution_graph(handle, problem));
    std::vector<ConvolutionPlan> plans;
    for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
        if (mode == CUDNN_HEUR_MODE_FALLBACK && !plans.empty()) break;
        for (CudnnDescriptor& configuration : engine_configurations(graph->graph, mode)) {
            if (plans.size() == limit) break;
            if (!is_acceptable(configuration, problem.allow_tf32)) continue;
            CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
            plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
            if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;  // not for this shape after all
            int64_t bytes = 0, count = 0;
            CUDNN_CHECK(cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                                 1, &count, &bytes));
            if (bytes > kMaxConvolutionWorkspaceBytes) continue;
            plans.push_back({graph, std::move(configuration), std::move(plan), bytes});
        }
    }
    return plans;
}

inline cudnnStatus_t execute(cudnnHandle_t handle, const ConvolutionPlan& plan, const ConvolutionOperands& operands) {
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::vector<int64_t>{kX, kW, kBias, kY});
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             std::vector<const void*>{operands.x, operands.w, operands.bias, operands.y});
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, operands.workspace);
    pack.finalize();
    return cudnnBackendExecute(handle, plan.plan.get(), pack.get());
}

// What is known of one problem: its candidates and, once timed, the one kept.
struct ConvolutionEntry {
    std::vector<ConvolutionPlan> plans;
    bool decided = false;  // then plans holds exactly one
};

// Handles and plans, per device. A cuDNN handle serves one thread at a time, so the lock is held for a whole call: that
// is host time, microseconds once a problem is decided. Never destroyed: the driver may be gone before static
// destructors run.
struct ConvolutionCache {
    std::mutex mutex;
    std::map<int, cudnnHandle_t> handles;
    std::map<std::vector<int64_t>, ConvolutionEntry> entries;
};

inline ConvolutionCache& convolution_cache() {
    static auto& cache = *new ConvolutionCache();
    return cache;
}

constexpr size_t kMaxConvolutionCandidates = 24;

// The current device's handle and the problem's entry, made on first use; the cache's lock must be held.
inline std::pair<cudnnHandle_t, ConvolutionEntry*> find_convolution(ConvolutionCache& cache, const Convolution& problem,
                                                                    bool timed) {
    int device = 0;
    CUDA_CHECK(cudaGetDevice(&device));
    cudnnHandle_t& handle = cache.handles[device];
    if (handle == nullptr) CUDNN_CHECK(cudnnCreate(&handle));

    std::vector<int64_t> key = {device, problem.type, problem.alignment, problem.allow_tf32, timed};
    for (const std::vector<int64_t>* part : {&problem.x.sizes, &problem.x.strides, &problem.w.sizes, &problem.w.strides,
                                             &problem.y.sizes, &problem.y.strides, &problem.stride, &problem.padding}) {
        key.insert(key.end(), part->begin(), part->end());
    }
    ConvolutionEntry& entry = cache.entries[key];
    if (entry.plans.empty()) {
        entry.plans = convolution_plans(handle, problem, timed ? kMaxConvolutionCandidates : 1);
        entry.decided = entry.plans.size() == 1;
    }
    return {handle, &entry};
}

}  // namespace detail

enum class ConvolutionSearch { kTimed, kHeuristic };

// Scratch memory the next run_convolution of this problem may use: the chosen plan's, or the most any candidate wants
// while they are still to be timed. -1 when cuDNN has no engine for the problem.
inline int64_t convolution_workspace_bytes(const Convolution& problem, ConvolutionSearch search) {
    detail::ConvolutionCache& cache = detail::convolution_cache();
    const std::lock_guard<std::mutex> lock(cache.mutex);
    const auto [handle, entry] = detail::find_convolution(cache, problem, search == ConvolutionSearch::kTimed);
    int64_t bytes = -1;
    for (const detail::ConvolutionPlan& plan : entry->plans) bytes = std::max(bytes, plan.workspace_bytes);
    return bytes;
}

// Enqueues y = conv(x, w) + bias on `stream`, with a workspace of convolution_workspace_bytes(). Returns false, having
// enqueued nothing, when cuDNN has no engine for the problem. Throws kernels::Error when a call fails.
//
// The first timed call of a problem blocks the calling thread while it times the candidates, which write y and the
// workspace and nothing else: y must not overlap the operands. During a CUDA graph capture nothing can be timed: the
// best guess is used, and not remembered.
inline bool run_convolution(const Convolution& problem, const ConvolutionOperands& operands, ConvolutionSearch search,
                            cudaStream_t stream) {
    detail::ConvolutionCache& cache = detail::convolution_cache();
    const std::lock_guard<std::mutex> lock(cache.mutex);
    const auto [handle, entry] = detail::find_convolution(cache, problem, search == ConvolutionSearch::kTimed);
    if (entry->plans.empty()) return false;
    CUDNN_CHECK(cudnnSetStream(handle, stream));
    if (!entry->decided && !is_capturing(stream)) {
        const int best =
            fastest(static_cast<int>(entry->plans.size()), stream, [&, handle = handle, entry = entry](int i) {
                return detail::execute(handle, entry->plans[i], operands) == CUDNN_STATUS_SUCCESS;
            });
        if (best < 0) return false;
        std::swap(entry->plans.front(), entry->plans[best]);
        while (entry->plans.size() > 1) entry->plans.pop_back();
        entry->decided = true;
    }
    CUDNN_CHECK(detail::execute(handle, entry->plans.front(), operands));
    return true;
}

}  // namespace kernels
