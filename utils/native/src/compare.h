// The comparison's structs, shared by host, device and (as ctypes mirrors in utils/native/compare.py) Python.
#pragma once

#include "platform.h"

constexpr int kMaxDims = 32;
constexpr int kBins = 16;

// Two tensors walked together, dimensions ordered as the caller wishes them visited, the last one fastest.
// Strides are in elements and may be 0. An element's index in a Tally counts in this order.
struct Walk {
    const void* expected;
    const void* actual;
    int32_t expected_dtype, actual_dtype;
    int32_t ndim;
    int32_t reserved;
    int64_t count;
    int64_t size[kMaxDims];
    int64_t expected_stride[kMaxDims];
    int64_t actual_stride[kMaxDims];
};

// |expected - actual| <= atol + rtol * |expected|, both finite and not negative. `poison_seed` is that of the poison
// laid under `actual` before it was written, and `poison` its kind, kPoisonNone when there was none.
struct Rule {
    double atol, rtol;
    uint64_t poison_seed;
    int32_t poison;
    int32_t reserved;
};

// What one pass finds. Errors, norms and sums are over pairs that are finite on both sides.
struct Tally {
    int64_t failing;  // elements outside the tolerance, NaN/Inf disagreements and unwritten ones included
    int64_t finite;   // pairs finite on both sides
    int64_t nan_expected, nan_actual, inf_expected, inf_actual;
    int64_t nonfinite_mismatch;  // NaN or Inf on one side only, or Inf of the other sign
    int64_t unwritten;           // elements of `actual` that still hold the poison
    int64_t worst_at;            // index of the worst element, -1 when every element is equal
    int64_t max_abs_at;
    double worst_ratio;  // err / (atol + rtol |expected|), inf for a disagreement; the error itself when both are 0
    double worst_error;
    double max_abs, max_rel;
    double atol_needed, rtol_needed;  // smallest that would pass, with the other as given; inf where none does
    double peak;                      // largest |expected|
    double sum_error2, sum_expected2, sum_actual2, sum_product;
    uint64_t worst_expected[2], worst_actual[2];  // the raw bytes of the worst element
};

// Where the failing elements lie along each dimension of the walk.
struct Clusters {
    int64_t failing;
    int64_t first[kMaxDims], last[kMaxDims];
    int64_t bins[kMaxDims][kBins];  // bin b holds the indices i with floor(i / size * kBins) == b
};

// Adds `part` to `all`, whose bounds begin at INT64_MAX and -1.
inline void join(Clusters& all, const Clusters& part, int ndim) {
    if (part.failing == 0) return;
    all.failing += part.failing;
    for (int d = 0; d < ndim; ++d) {
        if (part.first[d] < all.first[d]) all.first[d] = part.first[d];
        if (part.last[d] > all.last[d]) all.last[d] = part.last[d];
        for (int bin = 0; bin < kBins; ++bin) all.bins[d][bin] += part.bins[d][bin];
    }
}
