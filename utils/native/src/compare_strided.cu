// Comparison of two tensors of any strides and of two dtypes that may differ, and the search for where the failures
// lie.
//
// The dtypes are told at run time and are the same for all threads, so their switches do not diverge; one kernel per
// number of dimensions serves every pair of dtypes.
#include "compare_device.cuh"
#include "walker.h"

namespace {

// One element's bytes, as loaded.
struct alignas(16) Bytes {
    uint64_t low, high;
};

template <class T, int N>
__device__ __forceinline__ void gather(const void* base, const int64_t (&offset)[N], Bytes (&out)[N]) {
#pragma unroll
    for (int k = 0; k < N; ++k) out[k].low = uint64_t(static_cast<const T*>(base)[offset[k]]);
}

// Complex numbers are aligned to their parts only.
template <class T, int N>
__device__ __forceinline__ void gather_pairs(const void* base, const int64_t (&offset)[N], Bytes (&out)[N]) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
        const T* parts = static_cast<const T*>(base) + 2 * offset[k];
        if constexpr (sizeof(T) == 8) {
            out[k].low = parts[0];
            out[k].high = parts[1];
        } else {
            out[k].low = uint64_t(parts[0]) | uint64_t(parts[1]) << (8 * sizeof(T));
        }
    }
}

// N elements at once: their loads are independent and under way together.
template <int N>
__device__ __forceinline__ void gather_any(int32_t dtype, const void* base, const int64_t (&offset)[N],
                                           Bytes (&out)[N]) {
    switch (dtype) {
        case kC128:
            return gather_pairs<uint64_t>(base, offset, out);
        case kC64:
            return gather_pairs<uint32_t>(base, offset, out);
        case kC32:
            return gather_pairs<uint16_t>(base, offset, out);
        default:
            break;
    }
    switch (item_size(dtype)) {
        case 8:
            return gather<uint64_t>(base, offset, out);
        case 4:
            return gather<uint32_t>(base, offset, out);
        case 2:
            return gather<uint16_t>(base, offset, out);
        default:
            return gather<uint8_t>(base, offset, out);
    }
}

__device__ __forceinline__ const char* address(const void* base, int64_t offset, int width) {
    return static_cast<const char*>(base) + offset * width;
}

template <int DIMS>
__global__ void __launch_bounds__(kThreads, 2)
    compare_strided(const __grid_constant__ Walk walk, const __grid_constant__ Rule rule, Tally* parts) {
    constexpr int kAtOnce = 4;
    __shared__ SharedGate<double> shared_gate;
    shared_gate.clear();
    const Narrow<double> narrow_rule = narrow<double>(rule);
    const Pair pair = pair_of(walk.expected_dtype, walk.actual_dtype);
    const int expected_width = item_size(pair.expected_dtype), actual_width = item_size(pair.actual_dtype);
    Tally tally = empty_tally();
    Sums sums;
    double peak = 0;

    const int64_t step = int64_t(gridDim.x) * kThreads;
    int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    Walker<DIMS> walker(walk, i < walk.count ? i : 0, step);
    while (i < walk.count) {
        int64_t expected_at[kAtOnce], actual_at[kAtOnce];
        int present = 0;
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) {
            // Past the end the first element is read once more and ignored.
            const bool inside = i + k * step < walk.count;
            expected_at[k] = inside ? walker.expected : 0;
            actual_at[k] = inside ? walker.actual : 0;
            present += inside;
            walker.advance(walk);
        }
        Bytes e[kAtOnce], a[kAtOnce];
        gather_any(pair.expected_dtype, walk.expected, expected_at, e);
        gather_any(pair.actual_dtype, walk.actual, actual_at, a);
        const Gate<double> gate = shared_gate.read();
        bool raised = false;
#pragma unroll 1
        for (int k = 0; k < present; ++k) {
            const Value ev = load_value(pair.expected_dtype, &e[k]), av = load_value(pair.actual_dtype, &a[k]);
            if (!look_any(pair, ev, av, gate, narrow_rule, sums, peak)) continue;
            examine(tally, rule, pair, address(walk.expected, expected_at[k], expected_width),
                    address(walk.actual, actual_at[k], actual_width), i + k * step, actual_at[k],
                    left_out_any(pair, ev, av));
            raised = true;
        }
        if (raised) shared_gate.raise(gate_of<double>(tally, rule));
        i += kAtOnce * step;
    }
    absorb(tally, sums);
    tally.peak = fmax(tally.peak, peak);
    write_block_tally(tally, parts);
}

__global__ void __launch_bounds__(kThreads)
    locate_failures(const __grid_constant__ Walk walk, const __grid_constant__ Rule rule, Clusters* parts) {
    using Count = unsigned long long;
    __shared__ Clusters found;
    if (threadIdx.x == 0) found.failing = 0;
    for (int d = threadIdx.x; d < kMaxDims; d += kThreads) {
        found.first[d] = INT64_MAX;
        found.last[d] = 0;  // an unsigned maximum: no index is below 0
    }
    for (int b = threadIdx.x; b < kMaxDims * kBins; b += kThreads) (&found.bins[0][0])[b] = 0;
    __syncthreads();

    const Pair pair = pair_of(walk.expected_dtype, walk.actual_dtype);
    const int expected_width = item_size(pair.expected_dtype), actual_width = item_size(pair.actual_dtype);
    const auto raise = [](int64_t* count, int64_t by) { atomicAdd(reinterpret_cast<Count*>(count), Count(by)); };
    const int64_t step = int64_t(gridDim.x) * kThreads;
    int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    Walker<0> walker(walk, i < walk.count ? i : 0, step);
    int64_t failing = 0;
    for (; i < walk.count; i += step, walker.advance(walk)) {
        if (!element_fails(rule, pair, address(walk.expected, walker.expected, expected_width),
                           address(walk.actual, walker.actual, actual_width), walker.actual))
            continue;
        failing += 1;
        for (int d = 0; d < walk.ndim; ++d) {
            const int64_t index = walker.index[d];
            // The bounds settle early; asking first spares nearly all of these atomics.
            if (index < static_cast<volatile int64_t*>(found.first)[d])
                atomicMin(reinterpret_cast<Count*>(&found.first[d]), Count(index));
            if (index > static_cast<volatile int64_t*>(found.last)[d])
                atomicMax(reinterpret_cast<Count*>(&found.last[d]), Count(index));
            raise(&found.bins[d][bin_of(index, walk.size[d])], 1);
        }
    }
    if (failing != 0) raise(&found.failing, failing);
    __syncthreads();
    const int64_t* from = reinterpret_cast<const int64_t*>(&found);
    int64_t* to = reinterpret_cast<int64_t*>(&parts[blockIdx.x]);
    for (int w = threadIdx.x; w < int(sizeof(Clusters) / sizeof(int64_t)); w += kThreads) to[w] = from[w];
}

}  // namespace

void launch_strided(const Walk& walk, const Rule& rule, Tally* parts, int blocks, cudaStream_t stream) {
    switch (walk.ndim) {
        case 1:
            compare_strided<1><<<blocks, kThreads, 0, stream>>>(walk, rule, parts);
            break;
        case 2:
            compare_strided<2><<<blocks, kThreads, 0, stream>>>(walk, rule, parts);
            break;
        case 3:
            compare_strided<3><<<blocks, kThreads, 0, stream>>>(walk, rule, parts);
            break;
        case 4:
            compare_strided<4><<<blocks, kThreads, 0, stream>>>(walk, rule, parts);
            break;
        default:
            compare_strided<0><<<blocks, kThreads, 0, stream>>>(walk, rule, parts);
            break;
    }
}

// Where the failing elements of a comparison lie; `walk` keeps the tensor's own dimensions. Waits for `stream`.
NATIVE_API int32_t native_locate_cuda(int32_t device, cudaStream_t stream, const Walk* walk, const Rule* rule,
                                      Clusters* clusters) {
    ENTER(device);
    const int64_t wanted = (walk->count + kThreads - 1) / kThreads;
    const int blocks = int(wanted < 2 * multiprocessors(device) ? wanted : 2 * multiprocessors(device));
    const Mailbox mailbox(blocks * sizeof(Clusters));
    if (mailbox.memory == nullptr) return mailbox.status;
    Clusters* parts = static_cast<Clusters*>(mailbox.memory);
    locate_failures<<<blocks, kThreads, 0, stream>>>(*walk, *rule, parts);
    RUNTIME(cudaGetLastError());
    RUNTIME(cudaStreamSynchronize(stream));
    *clusters = {};
    for (int d = 0; d < walk->ndim; ++d) {
        clusters->first[d] = INT64_MAX;
        clusters->last[d] = -1;
    }
    for (int b = 0; b < blocks; ++b) join(*clusters, parts[b], walk->ndim);
    return kOk;
}
