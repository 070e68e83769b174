// Plans of kernels/common/cudnn_conv.h for an H200, made by the real cuDNN on a machine that need not have a GPU.
//
// cuDNN can plan for a device it is only told about (a DEVICEPROP descriptor in place of a handle). This program
// includes the header with the few calls that need a device replaced: the handle becomes the description, running a
// plan counts it, and the clock gives each plan a time of its own. So what is tested is the graph, the choice of
// engines, and the bookkeeping; not the numbers. Prints one line of JSON per problem; run by test_cudnn_plans.py.
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <vector>

namespace {

constexpr const char* kH200 =
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
        "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
        "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
        "supportCoopLaunch": 1, "totalGlobalMem": 150000000000, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000,
        "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 900, "driverVer": 13000, "deviceName": "H200"})";

cudnnBackendDescriptor_t device = nullptr;
std::map<void*, cudnnBackendDescriptorType_t> types;
std::map<void*, int> runs;  // of each plan
void* last_run = nullptr;
void* refusing = nullptr;  // a plan that cannot run
bool capturing = false;

cudnnStatus_t create_handle(cudnnHandle_t* handle) {
    *handle = reinterpret_cast<cudnnHandle_t>(&device);
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    status = cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                      static_cast<int64_t>(std::strlen(kH200)), kH200);
    return status != CUDNN_STATUS_SUCCESS ? status : cudnnBackendFinalize(device);
}

cudnnStatus_t set_stream(cudnnHandle_t, cudaStream_t) {
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
    const cudnnStatus_t status = cudnnBackendCreateDescriptor(type, descriptor);
    types[*descriptor] = type;
    return status;
}

cudnnStatus_t set_attribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, int64_t count, const void* values) {
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE) {
        return cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                        1, &device);
    }
    return cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

cudnnStatus_t finalize_descriptor(cudnnBackendDescriptor_t descriptor) {
    if (types[descriptor] == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
        const cudnnStatus_t status = cudnnBackendSetAttribute(descriptor, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                                              CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &device);
        if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return cudnnBackendFinalize(descriptor);
}

cudnnStatus_t execute_plan(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t) {
    if (plan == refusing) return CUDNN_STATUS_EXECUTION_FAILED;
    ++runs[plan];
    last_run = plan;
    return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* index) {
    *index = 0;
    return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
    *status = capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t*) {
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) {
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return cudaSuccess;
}
cudaError_t cudaGetLastError() {
    return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
    return "error";
}
const char* cudaGetErrorString(cudaError_t) {
    return "an error";
}
// The plan first run is the slowest, the next one faster, and so on.
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
    static std::vector<void*> order;
    size_t position = 0;
    while (position < order.size() && order[position] != last_run) ++position;
    if (position == order.size()) order.push_back(last_run);
    *ms = 1000.0f - static_cast<float>(position);
    return cudaSuccess;
}
}

#define cudnnCreate create_handle
#define cudnnSetStream set_stream
#define cudnnBackendCreateDescriptor create_descriptor
#define cudnnBackendSetAttribute set_attribute
#define cudnnBackendFinalize finalize_descriptor
#define cudnnBackendExecute execute_plan
#include "common/cudnn_conv.h"

namespace {

using namespace kernels;

Convolution problem(int64_t n, int64_t c, int64_t hw, int64_t patch, int64_t k, bool over_patches, bool allow_tf32) {
    const int64_t rows = hw / patch;
    Convolution result;
    if (over_patches) {
        result.x = channels_last({n, c * patch * patch, rows, rows});
        result.w = channels_last({k, c * patch * patch, 1, 1});
        result.stride = {1, 1};
    } else {
        result.x = channels_first({n, c, hw, hw});
        result.w = channels_first({k, c, patch, patch});
        result.stride = {patch, patch};
    }
    result.y = channels_last({n, k, rows, rows});
    result.padding = {0, 0};
    result.type = CUDNN_DATA_FLOAT;
    result.alignment = 16;
    result.allow_tf32 = allow_tf32;
    return result;
}

void report(const char* name, const Convolution& convolution, ConvolutionSearch search) {
    const ConvolutionOperands operands{&types, &types, &types, &types, nullptr};
    const auto plans_now = [&]() -> const std::vector<detail::ConvolutionPlan>& {
        return detail::find_convolution(detail::convolution_cache(), convolution, search == ConvolutionSearch::kTimed)
            .second->plans;
    };
    const int64_t first_bytes = convolution_workspace_bytes(convolution, search);
    const size_t candidates = plans_now().size();
    std::set<void*> distinct;
    for (const auto& plan : plans_now()) distinct.insert(plan.plan.get());

    capturing = true;
    bool ran = run_convolution(convolution, operands, search, nullptr);
    capturing = false;
    const bool kept_while_capturing = plans_now().size() == candidates;

    refusing = candidates > 1 ? plans_now().front().plan.get() : nullptr;
    ran = run_convolution(convolution, operands, search, nullptr) && ran;
    void* const chosen = last_run;
    const bool chose_another = chosen != refusing && distinct.count(chosen) == 1;
    refusing = nullptr;
    runs.clear();
    ran = run_convolution(convolution, operands, search, nullptr) && ran;
    std::printf(
        "{\"name\": \"%s\", \"candidates\": %zu, \"workspace_before\": %lld, \"workspace_after\": %lld, \"ran\": %s, "
        "\"kept_while_capturing\": %s, \"chose_another_than_the_refusing\": %s, \"one_run_when_decided\": %s}\n",
        name, candidates, static_cast<long long>(first_bytes),
        static_cast<long long>(convolution_workspace_bytes(convolution, search)), ran ? "true" : "false",
        kept_while_capturing ? "true" : "false", chose_another ? "true" : "false",
        runs.size() == 1 && runs[chosen] == 1 && plans_now().size() == 1 ? "true" : "false");
}

}  // namespace

int main() {
    constexpr auto kTimed = ConvolutionSearch::kTimed;
    try {
        report("patches", problem(64, 3, 224, 16, 768, true, true), kTimed);
        report("patches, first guess", problem(64, 3, 224, 16, 768, true, true), ConvolutionSearch::kHeuristic);
        report("patches, fp32", problem(64, 3, 224, 16, 768, true, false), kTimed);
        report("image", problem(64, 3, 224, 16, 768, false, true), kTimed);
        report("small", problem(2, 3, 32, 8, 64, true, true), kTimed);
        report("odd", problem(2, 3, 15, 5, 19, true, true), kTimed);
        report("odd, fp32", problem(2, 3, 15, 5, 19, true, false), kTimed);
        report("odd image", problem(2, 3, 17, 5, 19, false, true), kTimed);
        report("one", problem(1, 1, 1, 1, 1, true, false), kTimed);
        CUDNN_CHECK(cudnnBackendFinalize(nullptr));
    } catch (const kernels::Error& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 0;
}
