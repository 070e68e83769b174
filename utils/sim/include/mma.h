// nvcuda::wmma for the simulator. Which lane holds which element is not defined by CUDA; here lane l holds elements
// l n ... l n + n - 1 of the matrix in row-major order.
#pragma once

#include <sim/matrix.h>

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };

namespace precision {
struct tf32 {};
}  // namespace precision

template <class T>
struct storage {
    using type = T;
};
template <>
struct storage<precision::tf32> {
    using type = float;
};

inline float __float_to_tf32(float x) {
    const unsigned bits = sim::bits_as<unsigned>(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? x : sim::bits_as<float>((bits + 0x1000u) & ~0x1fffu);
}

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    static constexpr int ROWS = std::is_same_v<Use, matrix_b> ? K : M;
    static constexpr int COLUMNS = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = ROWS * COLUMNS / 32;
    static constexpr int num_storage_elements = num_elements;
    using element_type = T;
    using storage_element_type = typename storage<T>::type;
    storage_element_type x[num_elements];
};

template <class Use, int M, int N, int K, class T, class L, class V>
void fill_fragment(fragment<Use, M, N, K, T, L>& f, const V& value) {
    for (auto& x : f.x) x = static_cast<typename storage<T>::type>(value);
}

namespace detail {
template <class F, class P>
SIM_RAW void load(F& f, const P* from, unsigned stride, bool row_major, const char* file, int line) {
    sim::check_aligned(from, 16, file, line);
    for (int i = 0; i < F::num_elements; ++i) {
        const unsigned at = sim::lane_id() * F::num_elements + i, row = at / F::COLUMNS, column = at % F::COLUMNS;
        const P* p = from + (row_major ? row * stride + column : column * stride + row);
        SIM_ANNOUNCE(p, sizeof(P), sim::READ);
        f.x[i] = *p;
    }
}
}  // namespace detail

template <class Use, int M, int N, int K, class T, class L, class P>
void load_matrix_sync(fragment<Use, M, N, K, T, L>& f, const P* from, unsigned stride, SIM_SITE) {
    sim::exchange(~0u, 0, sim::WarpKind::MATRIX, SIM_HERE);
    detail::load(f, from, stride, std::is_same_v<L, row_major>, SIM_HERE);
}
template <int M, int N, int K, class T, class P>
void load_matrix_sync(fragment<accumulator, M, N, K, T, void>& f, const P* from, unsigned stride, layout_t layout,
                      SIM_SITE) {
    sim::exchange(~0u, 0, sim::WarpKind::MATRIX, SIM_HERE);
    detail::load(f, from, stride, layout == mem_row_major, SIM_HERE);
}

namespace detail {
template <class F, class P>
SIM_RAW void store(P* to, const F& f, unsigned stride, bool row_major, const char* file, int line) {
    sim::check_aligned(to, 16, file, line);
    for (int i = 0; i < F::num_elements; ++i) {
        const unsigned at = sim::lane_id() * F::num_elements + i, row = at / F::COLUMNS, column = at % F::COLUMNS;
        P* p = to + (row_major ? row * stride + column : column * stride + row);
        SIM_ANNOUNCE(p, sizeof(P), sim::WRITE);
        *p = f.x[i];
    }
}
template <class T>
double number(const typename storage<T>::type& x) {
    if constexpr (std::is_same_v<T, precision::tf32>)
        return sim::bits_as<float>(sim::bits_as<unsigned>(x) & ~0x1fffu);
    else
        return sim::number(x);
}
}  // namespace detail

template <int M, int N, int K, class T, class P>
void store_matrix_sync(P* to, const fragment<accumulator, M, N, K, T, void>& f, unsigned stride, layout_t layout,
                       SIM_SITE) {
    sim::exchange(~0u, 0, sim::WarpKind::MATRIX, SIM_HERE);
    detail::store(to, f, stride, layout == mem_row_major, SIM_HERE);
}

template <int M, int N, int K, class A, class LA, class B, class LB, class C, class D>
void mma_sync(fragment<accumulator, M, N, K, D, void>& d, const fragment<matrix_a, M, N, K, A, LA>& a,
              const fragment<matrix_b, M, N, K, B, LB>& b, const fragment<accumulator, M, N, K, C, void>& c, SIM_SITE) {
    const sim::MmaOperands mine{a.x, b.x};
    const sim::Slot& slot = sim::exchange(~0u, reinterpret_cast<sim::u64>(&mine), sim::WarpKind::MATRIX, SIM_HERE);
    if (slot.lanes != ~0u) sim::fatal("missing_lanes", "mma_sync needs all 32 lanes", SIM_HERE);
    using SA = typename storage<A>::type;
    using SB = typename storage<B>::type;
    constexpr int NA = M * K / 32, NB = K * N / 32, ND = M * N / 32;
    for (int i = 0; i < ND; ++i) {
        const int at = static_cast<int>(sim::lane_id()) * ND + i, row = at / N, column = at % N;
        double sum = sim::number(c.x[i]);
        for (int k = 0; k < K; ++k) {
            const int ia = row * K + k, ib = k * N + column;
            const SA* xa = static_cast<const SA*>(reinterpret_cast<const sim::MmaOperands*>(slot.value[ia / NA])->a);
            const SB* xb = static_cast<const SB*>(reinterpret_cast<const sim::MmaOperands*>(slot.value[ib / NB])->b);
            sum += detail::number<A>(xa[ia % NA]) * detail::number<B>(xb[ib % NB]);
        }
        d.x[i] = sim::rounded<D>(sum);
    }
    sim::exchange(~0u, 0, sim::WarpKind::MATRIX, SIM_HERE);
}

}  // namespace wmma
}  // namespace nvcuda
