// The fast look at one pair, which spares nearly every pair the exact examination.
//
// A pair matters to the tally only when its error exceeds one of five lines over the magnitude m = |expected|:
//     the tolerance, or the worst ratio so far     min(1, worst) * (atol + rtol m)
//     the largest error so far                     max_abs
//     the largest relative error so far            max_rel * m
//     the atol needed so far                       atol_needed + rtol m
//     the rtol needed so far                       atol + rtol_needed * m
// The lines are evaluated in the narrow type with a margin that outweighs its rounding: a pair let through wrongly
// costs a little time, and none is held back wrongly. Since pairs on a line are examined too, the outcome is the same
// whichever thread raised the line first.
#pragma once

#include "tally.h"

// In fp32 a difference loses up to 2^-24 of itself, and a line a + b m gains up to 2 * 2^-24 on its way: 2^-21
// outweighs the three more than twice over. Not more than that: errors all of nearly the same relative size, as a
// scaled tensor has, crowd at the top line, and each that lies within the margin is examined.
constexpr double kMargin = 1.0 - 0x1p-21;

template <class F>
HD F round_down(double x);

template <>
HD double round_down<double>(double x) {
    return x;
}

template <>
HD float round_down<float>(double x) {
#if defined(__CUDA_ARCH__)
    return __double2float_rd(x);
#else
    const float nearest = float(x);
    return double(nearest) > x ? nextafterf(nearest, -HUGE_VALF) : nearest;
#endif
}

template <class F>
struct Gate {
    F tolerance, slope;  // min(1, worst) * atol and * rtol
    F max_abs, max_rel, atol_needed, rtol_needed;
    F peak;  // largest magnitude, for complex numbers only: reals keep theirs exactly

    static constexpr int kFields = 7;
};

// The lines as the tally has raised them. None ever falls, so each field may be raised by maximum.
template <class F>
HD Gate<F> gate_of(const Tally& t, const Rule& rule) {
    const double reached = fmin(t.worst_ratio, 1.0);
    Gate<F> g;
    g.tolerance = round_down<F>(reached * rule.atol * kMargin);
    g.slope = round_down<F>(reached * rule.rtol * kMargin);
    g.max_abs = round_down<F>(t.max_abs * kMargin);
    g.max_rel = round_down<F>(t.max_rel * kMargin);
    g.atol_needed = round_down<F>(t.atol_needed * kMargin);
    g.rtol_needed = round_down<F>(t.rtol_needed * kMargin);
    g.peak = round_down<F>(t.peak * kMargin);
    return g;
}

// The rule's own numbers in the narrow type.
template <class F>
struct Narrow {
    F atol, rtol;
};

HD float largest_of(float) {
    return 3.402823466e+38f;
}
HD double largest_of(double) {
    return 1.7976931348623157e+308;
}

template <class F>
HD Narrow<F> narrow(const Rule& rule) {
    return {round_down<F>(rule.atol * kMargin), round_down<F>(rule.rtol * kMargin)};
}

// Minimum and maximum that drop a NaN in `b`. One instruction on the device; on the host fminf would be a call.
template <class F>
HD F lesser(F a, F b) {
#if defined(__CUDA_ARCH__)
    return fmin(a, b);
#else
    return b < a ? b : a;
#endif
}

template <class F>
HD F larger_of(F a, F b) {
#if defined(__CUDA_ARCH__)
    return fmax(a, b);
#else
    return b > a ? b : a;
#endif
}

HD float modulus(float x) {
    return fabsf(x);
}
HD double modulus(double x) {
    return fabs(x);
}

// The lowest line at magnitude m. An infinite slope at m = 0 gives NaN, which the minimum drops: that line is as high
// as it can get already.
template <class F>
HD F lowest_line(const Gate<F>& g, const Narrow<F>& n, F m) {
    F line = lesser(g.max_abs, g.tolerance + g.slope * m);
    line = lesser(line, g.max_rel * m);
    line = lesser(line, g.atol_needed + n.rtol * m);
    return lesser(line, n.atol + g.rtol_needed * m);
}

// |x + iy| within [1/1.0079, 1/0.970] of max(M, 7/8 M + 1/2 m), M and m the larger and the smaller part: the extremes
// of that ratio over m/M are 1.0078 at 4/7 and 0.9701 at 1/4.
template <class F>
HD F rough_modulus(F x, F y) {
    const F big = larger_of(modulus(x), modulus(y)), small = lesser(modulus(x), modulus(y));
    return larger_of(big, F(0.875) * big + F(0.5) * small);
}

// Whether a difference is too wild to be summed: a NaN, an infinity, or an overflow of the narrow type. Such a pair is
// always examined, and then summed there if it is finite after all.
template <class F>
HD bool wild(F difference) {
    return !(modulus(difference) <= largest_of(F()));
}

// Adds a pair to the sums unless it is wild, and says whether it must be examined.
template <DType D>
HD bool look(const typename Element<D>::Raw& expected, const typename Element<D>::Raw& actual,
             const Gate<typename Element<D>::Fast>& g, const Narrow<typename Element<D>::Fast>& n, Sums& s,
             typename Element<D>::Fast& peak) {
    using F = typename Element<D>::Fast;
    if constexpr (Element<D>::kind == Kind::real) {
        F e = Element<D>::decode(expected), a = Element<D>::decode(actual);
        const F error = modulus(e - a);
        // A wild error is not below the line either. And & is not &&: no branch per element.
        const bool matters = !(error <= 0) & !(error < lowest_line(g, n, modulus(e)));
        if (wild(error)) e = a = F(0);
        peak = larger_of(peak, modulus(e));
        s.add(double(e), double(a));
        return matters;
    } else if constexpr (Element<D>::kind == Kind::complex) {
        F er = Element<D>::decode(expected.re), ei = Element<D>::decode(expected.im);
        F ar = Element<D>::decode(actual.re), ai = Element<D>::decode(actual.im);
        const F m = rough_modulus(er, ei), error = rough_modulus(er - ar, ei - ai) * F(1.031);
        const bool strange = wild(modulus(er - ar) + modulus(ei - ai));
        const bool matters = (!(error <= 0) & !(error < lowest_line(g, n, m * F(0.992)))) | (m * F(1.031) > g.peak);
        if (strange) er = ei = ar = ai = F(0);
        s.add(double(er), double(ar));
        s.add(double(ei), double(ai));
        return strange | matters;
    } else {
        const double e = double(expected);
        peak = larger_of(peak, modulus(e));
        s.add(e, double(actual));
        return expected != actual;
    }
}

// The same for two elements of any dtypes, already read.
HD bool look_any(const Pair& pair, const Value& e, const Value& a, const Gate<double>& g, const Narrow<double>& n,
                 Sums& s, double& peak) {
    if (pair.kind == Kind::integer) {
        peak = larger_of(peak, modulus(e.re));
        s.add(e.re, a.re);
        return e.whole != a.whole;
    }
    if (wild(modulus(e.re - a.re) + modulus(e.im - a.im))) return true;
    s.add(e.re, a.re);
    if (pair.kind == Kind::real) {
        const double m = modulus(e.re), error = modulus(e.re - a.re);
        peak = larger_of(peak, m);
        return error > 0 && !(error < lowest_line(g, n, m));
    }
    s.add(e.im, a.im);
    const double m = rough_modulus(e.re, e.im), error = rough_modulus(e.re - a.re, e.im - a.im) * 1.031;
    return (error > 0 && !(error < lowest_line(g, n, m * 0.992))) || m * 1.031 > g.peak;
}

// Whether `look` left this pair out of the sums.
template <DType D>
HD bool left_out(const typename Element<D>::Raw& expected, const typename Element<D>::Raw& actual) {
    using E = Element<D>;
    if constexpr (E::kind == Kind::real) return wild(E::decode(expected) - E::decode(actual));
    if constexpr (E::kind == Kind::complex)
        return wild(modulus(E::decode(expected.re) - E::decode(actual.re)) +
                    modulus(E::decode(expected.im) - E::decode(actual.im)));
    return false;
}

HD bool left_out_any(const Pair& pair, const Value& e, const Value& a) {
    return pair.kind != Kind::integer && wild(modulus(e.re - a.re) + modulus(e.im - a.im));
}
