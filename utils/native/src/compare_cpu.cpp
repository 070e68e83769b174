// The comparison on the CPU: the same looks and examinations as on the GPU, in threads.
//
// Work is cut into chunks of a fixed size whose tallies are merged in order, so the result does not depend on how many
// threads there were.
#include <algorithm>
#include <mutex>
#include <vector>

#include "gate.h"
#include "threads.h"
#include "walker.h"

namespace {

constexpr int64_t kChunk = 1 << 18;  // elements

const char* at(const void* base, int64_t offset, int width) {
    return static_cast<const char*>(base) + offset * width;
}

template <DType D>
Tally compare_packed(const Walk& walk, const Rule& rule, int64_t begin, int64_t end) {
    using Raw = typename Element<D>::Raw;
    using F = typename Element<D>::Fast;
    const Raw* expected = static_cast<const Raw*>(walk.expected);
    const Raw* actual = static_cast<const Raw*>(walk.actual);
    const Pair pair = pair_of(D, D);
    const Narrow<F> narrow_rule = narrow<F>(rule);
    Tally tally = empty_tally();
    Gate<F> gate = gate_of<F>(tally, rule);
    Sums sums;
    F peak = 0;
    for (int64_t i = begin; i < end; ++i) {
        if (!look<D>(expected[i], actual[i], gate, narrow_rule, sums, peak)) continue;
        examine(tally, rule, pair, expected + i, actual + i, i, i, left_out<D>(expected[i], actual[i]));
        gate = gate_of<F>(tally, rule);
    }
    absorb(tally, sums);
    tally.peak = std::max(tally.peak, double(peak));
    return tally;
}

Tally compare_strided(const Walk& walk, const Rule& rule, int64_t begin, int64_t end) {
    const Pair pair = pair_of(walk.expected_dtype, walk.actual_dtype);
    const int expected_width = item_size(walk.expected_dtype), actual_width = item_size(walk.actual_dtype);
    const Narrow<double> narrow_rule = narrow<double>(rule);
    Tally tally = empty_tally();
    Gate<double> gate = gate_of<double>(tally, rule);
    Sums sums;
    double peak = 0;
    Walker<0> walker(walk, begin, 1);
    for (int64_t i = begin; i < end; ++i, walker.advance(walk)) {
        const char* e = at(walk.expected, walker.expected, expected_width);
        const char* a = at(walk.actual, walker.actual, actual_width);
        const Value ev = load_value(walk.expected_dtype, e), av = load_value(walk.actual_dtype, a);
        if (!look_any(pair, ev, av, gate, narrow_rule, sums, peak)) continue;
        examine(tally, rule, pair, e, a, i, walker.actual, left_out_any(pair, ev, av));
        gate = gate_of<double>(tally, rule);
    }
    absorb(tally, sums);
    tally.peak = std::max(tally.peak, peak);
    return tally;
}

bool packed(const Walk& walk) {
    return walk.ndim == 1 && walk.expected_stride[0] == 1 && walk.actual_stride[0] == 1 &&
           walk.expected_dtype == walk.actual_dtype;
}

Tally compare_chunk(const Walk& walk, const Rule& rule, int64_t begin, int64_t end) {
    if (!packed(walk)) return compare_strided(walk, rule, begin, end);
#define CALL(D) return compare_packed<D>(walk, rule, begin, end)
    FOR_DTYPE(walk.expected_dtype, CALL)
#undef CALL
    return empty_tally();
}

Clusters locate_chunk(const Walk& walk, const Rule& rule, int64_t begin, int64_t end) {
    const Pair pair = pair_of(walk.expected_dtype, walk.actual_dtype);
    const int expected_width = item_size(walk.expected_dtype), actual_width = item_size(walk.actual_dtype);
    Clusters found = {};
    std::fill(found.first, found.first + kMaxDims, INT64_MAX);
    Walker<0> walker(walk, begin, 1);
    for (int64_t i = begin; i < end; ++i, walker.advance(walk)) {
        const char* e = at(walk.expected, walker.expected, expected_width);
        const char* a = at(walk.actual, walker.actual, actual_width);
        if (!element_fails(rule, pair, e, a, walker.actual)) continue;
        found.failing += 1;
        for (int d = 0; d < walk.ndim; ++d) {
            const int64_t index = walker.index[d];
            found.first[d] = std::min(found.first[d], index);
            found.last[d] = std::max(found.last[d], index);
            found.bins[d][bin_of(index, walk.size[d])] += 1;
        }
    }
    return found;
}

}  // namespace

// Compares the two tensors of `walk` (at least one element and one dimension) under `rule` into `tally`.
NATIVE_API int32_t native_compare_cpu(const Walk* walk, const Rule* rule, Tally* tally) {
    const int64_t chunks = (walk->count + kChunk - 1) / kChunk;
    std::vector<Tally> parts(chunks);
    for_each_chunk(chunks, [&](int64_t chunk) {
        parts[chunk] = compare_chunk(*walk, *rule, chunk * kChunk, std::min(walk->count, (chunk + 1) * kChunk));
    });
    *tally = empty_tally();
    for (const Tally& part : parts) merge(*tally, part);
    tally->finite += walk->count;
    return kOk;
}

// Where the failing elements of the same comparison lie; `walk` here keeps the tensor's own dimensions.
NATIVE_API int32_t native_locate_cpu(const Walk* walk, const Rule* rule, Clusters* clusters) {
    *clusters = {};
    for (int d = 0; d < walk->ndim; ++d) {
        clusters->first[d] = INT64_MAX;
        clusters->last[d] = -1;
    }
    std::mutex mutex;
    for_each_chunk((walk->count + kChunk - 1) / kChunk, [&](int64_t chunk) {
        const Clusters part = locate_chunk(*walk, *rule, chunk * kChunk, std::min(walk->count, (chunk + 1) * kChunk));
        const std::lock_guard<std::mutex> lock(mutex);
        join(*clusters, part, walk->ndim);
    });
    return kOk;
}
