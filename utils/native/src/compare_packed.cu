// Comparison of two contiguous tensors of one dtype: each read once in 16-byte loads, at the speed of memory.
#include "compare_device.cuh"

namespace {

template <class Raw>
struct alignas(16) Vector {
    static constexpr int kSize = 16 / sizeof(Raw);
    Raw raw[kSize];
};

template <class Raw>
__device__ __forceinline__ Vector<Raw> load_vector(const Raw* place) {
    // Streaming: these tensors are larger than the cache or soon forgotten.
    const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(place));
    Vector<Raw> vector;
    memcpy(&vector, &bits, sizeof(vector));
    return vector;
}

template <class Raw>
__device__ __forceinline__ bool same_bits(const Vector<Raw>& x, const Vector<Raw>& y) {
    uint4 a, b;
    memcpy(&a, &x, sizeof(a));
    memcpy(&b, &y, sizeof(b));
    return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

// The squares and the largest magnitude of 16 one-byte integers, four at a time.
template <class Raw>
__device__ __forceinline__ void add_bytes(const Vector<Raw>& vector, unsigned long long& squares, unsigned& peaks) {
    unsigned words[4], total = 0;
    memcpy(words, &vector, sizeof(words));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        if constexpr (Raw(-1) < Raw(0)) {
            total = unsigned(__dp4a(int(words[i]), int(words[i]), int(total)));
            peaks = __vmaxu4(peaks, __vabs4(words[i]));
        } else {
            total = __dp4a(words[i], words[i], total);
            peaks = __vmaxu4(peaks, words[i]);
        }
    }
    squares += total;
}

__device__ __forceinline__ double largest_byte(unsigned bytes) {
    const unsigned two = __vmaxu4(bytes, bytes >> 16);
    return double(max(two & 0xffu, two >> 8 & 0xffu));
}

// A thread looks at UNROLL vectors of each tensor, notes in a bit mask which elements want examination, and examines
// those in a rolled loop that reads them again: they are rare, and a small loop body is what keeps the rest fast.
template <DType D>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor)
    compare_packed(const typename Element<D>::Raw* __restrict__ expected,
                   const typename Element<D>::Raw* __restrict__ actual, int64_t count,
                   const __grid_constant__ Rule rule, Tally* parts) {
    using Raw = typename Element<D>::Raw;
    using F = typename Element<D>::Fast;
    constexpr int kVector = Vector<Raw>::kSize;
    constexpr int kUnroll = 2;
    constexpr int64_t kTile = int64_t(kThreads) * kVector * kUnroll;
    static_assert(kVector * kUnroll <= 32, "the mask has 32 bits");
    constexpr bool kInteger = Element<D>::kind == Kind::integer, kBytes = kInteger && sizeof(Raw) == 1;

    __shared__ SharedGate<F> shared_gate;
    shared_gate.clear();
    const Narrow<F> narrow_rule = narrow<F>(rule);
    const Pair pair = pair_of(D, D);
    Tally tally = empty_tally();
    Sums sums;
    F peak = 0;
    double same = 0;                    // squares of integers that are equal on both sides
    unsigned long long same_bytes = 0;  // the same for one-byte integers
    unsigned byte_peaks = 0;

    const int64_t tiles = count / kTile;
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int64_t begin = tile * kTile + int64_t(threadIdx.x) * kVector;
        Vector<Raw> e[kUnroll], a[kUnroll];
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            e[u] = load_vector(expected + begin + u * (kThreads * kVector));
            a[u] = load_vector(actual + begin + u * (kThreads * kVector));
        }
        const Gate<F> gate = kInteger ? Gate<F>{} : shared_gate.read();
        unsigned examined = 0;
#pragma unroll
        for (int u = 0; u < kUnroll; ++u) {
            if constexpr (kInteger) {
                if (same_bits(e[u], a[u])) {
                    if constexpr (kBytes) {
                        add_bytes(e[u], same_bytes, byte_peaks);
                    } else {
#pragma unroll
                        for (int v = 0; v < kVector; ++v) {
                            const double x = double(e[u].raw[v]);
                            same += x * x;
                            peak = larger_of(peak, fabs(x));
                        }
                    }
                    continue;
                }
            }
#pragma unroll
            for (int v = 0; v < kVector; ++v) {
                if (look<D>(e[u].raw[v], a[u].raw[v], gate, narrow_rule, sums, peak))
                    examined |= 1u << (u * kVector + v);
            }
        }
        if (examined != 0) {
            do {
                const int bit = __ffs(int(examined)) - 1;
                examined &= examined - 1;
                const int64_t i = begin + (bit / kVector) * (kThreads * kVector) + bit % kVector;
                examine(tally, rule, pair, expected + i, actual + i, i, i, left_out<D>(expected[i], actual[i]));
            } while (examined != 0);
            if (!kInteger) shared_gate.raise(gate_of<F>(tally, rule));
        }
    }

    // What does not fill a tile, element by element.
    const int64_t step = int64_t(gridDim.x) * kThreads;
    for (int64_t i = tiles * kTile + int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += step) {
        const Gate<F> gate = kInteger ? Gate<F>{} : shared_gate.read();
        if (!look<D>(expected[i], actual[i], gate, narrow_rule, sums, peak)) continue;
        examine(tally, rule, pair, expected + i, actual + i, i, i, left_out<D>(expected[i], actual[i]));
        if (!kInteger) shared_gate.raise(gate_of<F>(tally, rule));
    }

    if constexpr (kInteger) {
        same += double(same_bytes);
        sums.expected2 += same;
        sums.actual2 += same;
        sums.product += same;
        if constexpr (kBytes) peak = larger_of(peak, largest_byte(byte_peaks));
    }
    absorb(tally, sums);
    tally.peak = fmax(tally.peak, double(peak));
    write_block_tally(tally, parts);
}

template <DType D>
void launch(const Walk& walk, const Rule& rule, Tally* parts, int blocks, cudaStream_t stream) {
    using Raw = typename Element<D>::Raw;
    compare_packed<D><<<blocks, kThreads, 0, stream>>>(static_cast<const Raw*>(walk.expected),
                                                       static_cast<const Raw*>(walk.actual), walk.count, rule, parts);
}

}  // namespace

void launch_packed(const Walk& walk, const Rule& rule, Tally* parts, int blocks, cudaStream_t stream) {
#define CALL(D) launch<D>(walk, rule, parts, blocks, stream)
    FOR_DTYPE(walk.expected_dtype, CALL)
#undef CALL
}
