// The meaning of a comparison, element by element: the exact examination of one pair, and how two tallies merge.
//
// Everything is evaluated in double, product and sum rounded separately as torch.isclose does, so that a difference
// equal to the tolerance passes on the CPU and on the GPU alike.
#pragma once

#include <cmath>

#include "compare.h"
#include "elements.h"
#include "poison_pattern.h"

// a * b and a + b that no compiler fuses: nvcc contracts by default, g++ is told not to (-ffp-contract=off).
HD double product(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

HD double sum(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dadd_rn(a, b);
#else
    return a + b;
#endif
}

HD bool is_nan(double x) {
    return x != x;
}
HD bool is_inf(double x) {
    return x - x != 0.0 && x == x;
}
HD bool is_finite(double x) {
    return x - x == 0.0;
}

struct Sums {
    double error2 = 0, expected2 = 0, actual2 = 0, product = 0;

    HD void add(double e, double a) {
        const double d = e - a;
        error2 += d * d;
        expected2 += e * e;
        actual2 += a * a;
        product += e * a;
    }
};

HD void absorb(Tally& t, const Sums& s) {
    t.sum_error2 += s.error2;
    t.sum_expected2 += s.expected2;
    t.sum_actual2 += s.actual2;
    t.sum_product += s.product;
}

HD Tally empty_tally() {
    Tally t = {};
    t.worst_at = t.max_abs_at = -1;
    return t;
}

// Is (ratio, error, index) worse than what `t` holds? The smaller index wins a tie, so the order of visits is no
// matter.
HD bool worse(const Tally& t, double ratio, double error, int64_t index) {
    if (ratio != t.worst_ratio) return ratio > t.worst_ratio;
    if (error != t.worst_error) return error > t.worst_error;
    return ratio > 0 && index < t.worst_at;
}

HD bool larger(const Tally& t, double error, int64_t index) {
    return error > t.max_abs || (error == t.max_abs && error > 0 && index < t.max_abs_at);
}

HD void merge(Tally& t, const Tally& o) {
    t.failing += o.failing;
    t.finite += o.finite;
    t.nan_expected += o.nan_expected;
    t.nan_actual += o.nan_actual;
    t.inf_expected += o.inf_expected;
    t.inf_actual += o.inf_actual;
    t.nonfinite_mismatch += o.nonfinite_mismatch;
    t.unwritten += o.unwritten;
    if (worse(t, o.worst_ratio, o.worst_error, o.worst_at)) {
        t.worst_ratio = o.worst_ratio;
        t.worst_error = o.worst_error;
        t.worst_at = o.worst_at;
        for (int i = 0; i < 2; ++i) {
            t.worst_expected[i] = o.worst_expected[i];
            t.worst_actual[i] = o.worst_actual[i];
        }
    }
    if (larger(t, o.max_abs, o.max_abs_at)) {
        t.max_abs = o.max_abs;
        t.max_abs_at = o.max_abs_at;
    }
    t.max_rel = fmax(t.max_rel, o.max_rel);
    t.atol_needed = fmax(t.atol_needed, o.atol_needed);
    t.rtol_needed = fmax(t.rtol_needed, o.rtol_needed);
    t.peak = fmax(t.peak, o.peak);
    t.sum_error2 += o.sum_error2;
    t.sum_expected2 += o.sum_expected2;
    t.sum_actual2 += o.sum_actual2;
    t.sum_product += o.sum_product;
}

// One pair of elements, compared.
struct Difference {
    bool nan_expected, nan_actual, inf_expected, inf_actual;
    bool finite;       // on both sides
    bool agree;        // within the tolerance, or the same NaN or Inf
    double error;      // |expected - actual|
    double magnitude;  // |expected|
    double bound;      // atol + rtol |expected|
};

HD Difference difference(const Rule& rule, Kind kind, bool without_sign, const Value& e, const Value& a) {
    Difference d = {};
    if (kind == Kind::integer) {
        // Exact even where a double is not: the distance of two 64-bit integers fits 64 bits unsigned.
        const bool below = without_sign ? a.whole < e.whole : int64_t(a.whole) < int64_t(e.whole);
        d.error = double(below ? e.whole - a.whole : a.whole - e.whole);
        d.magnitude = fabs(e.re);
    } else {
        d.nan_expected = is_nan(e.re) || is_nan(e.im);
        d.nan_actual = is_nan(a.re) || is_nan(a.im);
        d.inf_expected = !d.nan_expected && (is_inf(e.re) || is_inf(e.im));
        d.inf_actual = !d.nan_actual && (is_inf(a.re) || is_inf(a.im));
        if (d.nan_expected || d.nan_actual || d.inf_expected || d.inf_actual) {
            d.agree =
                (d.nan_expected && d.nan_actual) || (d.inf_expected && d.inf_actual && e.re == a.re && e.im == a.im);
            return d;
        }
        if (kind == Kind::complex) {
            d.error = hypot(e.re - a.re, e.im - a.im);
            d.magnitude = hypot(e.re, e.im);
        } else {
            d.error = fabs(e.re - a.re);
            d.magnitude = fabs(e.re);
        }
    }
    d.finite = true;
    d.bound = sum(rule.atol, product(rule.rtol, d.magnitude));
    d.agree = d.error <= d.bound && is_finite(d.error);
    return d;
}

// Smallest atol with error <= atol + rtol * magnitude, as evaluated.
HD double smallest_atol(double rtol, double error, double magnitude) {
    const double given = product(rtol, magnitude);
    if (error <= given) return 0.0;
    double target = error, atol = target - given;
    for (int i = 0; i < 4 && sum(atol, given) < error; ++i) {
        target = nextafter(target, HUGE_VAL);
        atol = target - given;
    }
    return atol;
}

// Smallest rtol with error <= atol + rtol * magnitude, as evaluated; inf where the reference is 0.
HD double smallest_rtol(double atol, double error, double magnitude) {
    if (error <= atol) return 0.0;
    if (magnitude == 0) return HUGE_VAL;
    double target = error, rtol = (target - atol) / magnitude;
    for (int i = 0; i < 4 && sum(atol, product(rtol, magnitude)) < error; ++i) {
        target = nextafter(target, HUGE_VAL);
        rtol = (target - atol) / magnitude;
    }
    return rtol;
}

HD void copy_raw(uint64_t* to, const void* from, int bytes) {
    to[0] = to[1] = 0;
    for (int i = 0; i < bytes; ++i)
        reinterpret_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
}

// The tensors' side of an examination: what the walk and the rule say of every element.
struct Pair {
    int32_t expected_dtype, actual_dtype;
    Kind kind;
    bool without_sign;
};

HD Pair pair_of(int32_t expected_dtype, int32_t actual_dtype) {
    const Kind e = kind_of(expected_dtype), a = kind_of(actual_dtype);
    Kind kind = Kind::real;
    if (e == Kind::complex || a == Kind::complex) kind = Kind::complex;
    // Integers are compared as integers only with their own kind; beside a float they are numbers like any other.
    if (e == Kind::integer && expected_dtype == actual_dtype) kind = Kind::integer;
    return {expected_dtype, actual_dtype, kind, is_unsigned(expected_dtype)};
}

// Whether this element fails, with the poison taken into account: an element never written fails even where the
// reference is NaN as well. One-byte floats have too few NaNs to tell ours from one computed, so there a NaN that the
// reference has too is given the benefit of the doubt.
HD bool element_unwritten(const Rule& rule, const Pair& pair, const Difference& d, const void* actual, int64_t offset) {
    if (rule.poison == kPoisonNone) return false;
    const int width = item_size(pair.actual_dtype);
    if (d.agree && (pair.kind == Kind::integer || width == 1)) return false;
    return holds_poison(rule.poison, rule.poison_seed, uint64_t(offset) * width, actual, width);
}

// The exact look at one pair: `index` in the walk, `offset` in elements from the first of `actual`. Adds to the sums
// only when told to: the fast loops have mostly done so already.
HD_COLD void examine(Tally& t, const Rule& rule, const Pair& pair, const void* expected, const void* actual,
                     int64_t index, int64_t offset, bool with_sums) {
    const Value e = load_value(pair.expected_dtype, expected), a = load_value(pair.actual_dtype, actual);
    const Difference d = difference(rule, pair.kind, pair.without_sign, e, a);
    const bool unwritten = element_unwritten(rule, pair, d, actual, offset);
    t.nan_expected += d.nan_expected;
    t.nan_actual += d.nan_actual;
    t.inf_expected += d.inf_expected;
    t.inf_actual += d.inf_actual;
    t.unwritten += unwritten;
    t.finite -= !d.finite;  // the driver of the pass adds the number of elements at its end
    t.nonfinite_mismatch += !d.finite && !d.agree;
    const bool fails = !d.agree || unwritten;
    t.failing += fails;

    double ratio = 0, error = 0;
    if (d.finite) {
        error = d.error;
        if (larger(t, error, index)) {
            t.max_abs = error;
            t.max_abs_at = index;
        }
        t.peak = fmax(t.peak, d.magnitude);
        if (error > 0) {
            ratio = d.bound > 0 ? error / d.bound : HUGE_VAL;
            if (rule.atol == 0 && rule.rtol == 0) ratio = error;
            if (error > product(t.max_rel, d.magnitude)) t.max_rel = fmax(t.max_rel, error / d.magnitude);
            if (error > sum(t.atol_needed, product(rule.rtol, d.magnitude)))
                t.atol_needed = fmax(t.atol_needed, smallest_atol(rule.rtol, error, d.magnitude));
            if (!(error <= sum(rule.atol, product(t.rtol_needed, d.magnitude))))
                t.rtol_needed = fmax(t.rtol_needed, smallest_rtol(rule.atol, error, d.magnitude));
        }
        if (with_sums) {
            Sums s;
            s.add(e.re, a.re);
            if (pair.kind == Kind::complex) s.add(e.im, a.im);
            absorb(t, s);
        }
    } else if (fails) {
        ratio = error = HUGE_VAL;
        t.atol_needed = t.rtol_needed = HUGE_VAL;
    }
    if (unwritten && d.agree) ratio = error = HUGE_VAL;
    if (ratio > 0 && worse(t, ratio, error, index)) {
        t.worst_ratio = ratio;
        t.worst_error = error;
        t.worst_at = index;
        copy_raw(t.worst_expected, expected, item_size(pair.expected_dtype));
        copy_raw(t.worst_actual, actual, item_size(pair.actual_dtype));
    }
}

// Whether one pair fails, and nothing more: what locating the failures needs.
HD_COLD bool element_fails(const Rule& rule, const Pair& pair, const void* expected, const void* actual,
                           int64_t offset) {
    const Value e = load_value(pair.expected_dtype, expected), a = load_value(pair.actual_dtype, actual);
    const Difference d = difference(rule, pair.kind, pair.without_sign, e, a);
    return !d.agree || element_unwritten(rule, pair, d, actual, offset);
}

HD int bin_of(int64_t index, int64_t size) {
    return int(double(index) * kBins / double(size));
}
