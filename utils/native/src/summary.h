// What one tensor holds: its range, its sums, its NaNs. Mirrored in utils/native/summary.py.
#pragma once

#include <cmath>

#include "elements.h"

// Over the finite elements; of complex numbers the modulus is taken, of integers beyond 2^53 the nearest double.
struct Summary {
    int64_t finite, nan, inf;
    double least, greatest;  // +inf and -inf when nothing is finite
    double total, squares;
};

HD Summary empty_summary() {
    return {0, 0, 0, HUGE_VAL, -HUGE_VAL, 0, 0};
}

HD void add(Summary& s, int32_t dtype, const void* place) {
    const Value v = load_value(dtype, place);
    if (v.re != v.re || v.im != v.im) {
        s.nan += 1;
        return;
    }
    const double x = kind_of(dtype) == Kind::complex ? hypot(v.re, v.im) : v.re;
    if (x - x != 0) {
        s.inf += 1;
        return;
    }
    s.finite += 1;
    s.least = fmin(s.least, x);
    s.greatest = fmax(s.greatest, x);
    s.total += x;
    s.squares += x * x;
}

HD void merge(Summary& s, const Summary& o) {
    s.finite += o.finite;
    s.nan += o.nan;
    s.inf += o.inf;
    s.least = fmin(s.least, o.least);
    s.greatest = fmax(s.greatest, o.greatest);
    s.total += o.total;
    s.squares += o.squares;
}
