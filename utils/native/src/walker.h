// Steps through the elements of a Walk in order, with the offset of each in both tensors.
//
// A position is found by division once and then advanced by a fixed stride with carries, since 64-bit division would
// cost more than the comparison itself. DIMS is the number of dimensions where it is known at compile time, which lets
// the indices live in registers, and 0 where it is not.
#pragma once

#include "compare.h"

template <int DIMS>
struct Walker {
    static constexpr int kDims = DIMS ? DIMS : kMaxDims;
    int64_t index[kDims];
    int64_t step[kDims];       // the digits of the stride in the mixed radix of the walk's sizes
    int64_t expected, actual;  // offsets in elements

    static HD int dims(const Walk& walk) { return DIMS ? DIMS : walk.ndim; }

    static HD void digits(const Walk& walk, int64_t position, int64_t* out) {
        UNROLL
        for (int d = dims(walk) - 1; d > 0; --d) {
            out[d] = position % walk.size[d];
            position /= walk.size[d];
        }
        out[0] = position;
    }

    HD void locate(const Walk& walk) {
        expected = actual = 0;
        UNROLL
        for (int d = 0; d < dims(walk); ++d) {
            expected += index[d] * walk.expected_stride[d];
            actual += index[d] * walk.actual_stride[d];
        }
    }

    HD Walker(const Walk& walk, int64_t position, int64_t stride) {
        digits(walk, position, index);
        digits(walk, stride, step);
        locate(walk);
    }

    // To the position `stride` further on; the caller knows where the walk ends.
    HD void advance(const Walk& walk) {
        int64_t carry = 0;
        UNROLL
        for (int d = dims(walk) - 1; d > 0; --d) {
            index[d] += step[d] + carry;
            carry = index[d] >= walk.size[d];
            if (carry) index[d] -= walk.size[d];
        }
        index[0] += step[0] + carry;
        locate(walk);
    }
};
