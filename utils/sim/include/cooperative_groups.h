// cooperative_groups for the simulator: thread block, tiles, coalesced threads, cluster, grid; reduce, scan and
// memcpy_async too.
#pragma once

#include <sim/atomics.h>
#include <sim/warp.h>

#include <cstring>

namespace cooperative_groups {

class thread_block;
namespace details {

inline unsigned nth_set(unsigned mask, unsigned n) {
    while (n--) mask &= mask - 1;
    return static_cast<unsigned>(__builtin_ctz(mask));
}

}  // namespace details

class grid_group {
  public:
    bool is_valid() const { return sim::grid_barrier_valid(); }
    void sync(SIM_SITE) const {
        sim::wide_arrive(sim::Wide::GRID, true, SIM_HERE);
        sim::wide_wait(sim::Wide::GRID, SIM_HERE);
    }
    static unsigned long long size() { return num_blocks() * (blockDim.x * blockDim.y * blockDim.z); }
    static unsigned long long num_threads() { return size(); }
    static unsigned long long num_blocks() {
        return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
    }
    static unsigned long long block_rank() {
        return blockIdx.x + static_cast<unsigned long long>(gridDim.x) *
                                (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
    }
    static unsigned long long thread_rank() {
        return block_rank() * (blockDim.x * blockDim.y * blockDim.z) + sim::block->current;
    }
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
inline grid_group this_grid() {
    return {};
}

// The blocks that run together and reach each other's shared memory; a launch without clusters has one block in each.
class cluster_group {
  public:
    struct arrival_token {};
    static void sync(SIM_SITE) {
        sim::wide_arrive(sim::Wide::CLUSTER, true, SIM_HERE);
        sim::wide_wait(sim::Wide::CLUSTER, SIM_HERE);
    }
    static arrival_token barrier_arrive(SIM_SITE) {
        sim::wide_arrive(sim::Wide::CLUSTER, true, SIM_HERE);
        return {};
    }
    static void barrier_wait(SIM_SITE) { sim::wide_wait(sim::Wide::CLUSTER, SIM_HERE); }
    static void barrier_wait(arrival_token&&, SIM_SITE) { sim::wide_wait(sim::Wide::CLUSTER, SIM_HERE); }
    static unsigned block_rank() { return sim::cluster_rank(); }
    static unsigned num_blocks() {
        const dim3 shape = sim::cluster_shape();
        return shape.x * shape.y * shape.z;
    }
    static dim3 block_index() {
        const uint3 place = sim::cluster_place();
        return dim3(place.x, place.y, place.z);
    }
    static dim3 dim_blocks() { return sim::cluster_shape(); }
    static unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return num_blocks() * threads_of_block(); }
    static unsigned size() { return num_threads(); }
    static unsigned thread_rank() { return block_rank() * threads_of_block() + sim::block->current; }
    static dim3 dim_threads() {
        const dim3 shape = sim::cluster_shape();
        return dim3(shape.x * blockDim.x, shape.y * blockDim.y, shape.z * blockDim.z);
    }
    static dim3 thread_index() {
        const uint3 place = sim::cluster_place();
        return dim3(place.x * blockDim.x + threadIdx.x, place.y * blockDim.y + threadIdx.y,
                    place.z * blockDim.z + threadIdx.z);
    }
    template <class T>
    static T* map_shared_rank(T* shared, int rank, SIM_SITE) {
        return reinterpret_cast<T*>(sim::map_shared(shared, static_cast<unsigned>(rank), SIM_HERE));
    }
    static unsigned query_shared_rank(const void* shared) { return sim::shared_rank(shared); }
};
inline cluster_group this_cluster() {
    return {};
}

class thread_block {
  public:
    static void sync(SIM_SITE) { sim::barrier(0, 0, false, true, true, SIM_HERE); }
    static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
    static unsigned num_threads() { return size(); }
    static unsigned thread_rank() { return sim::block->current; }
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
    struct arrival_token {};
};
inline thread_block this_thread_block() {
    return {};
}

// Some lanes of one warp, in order; what tiles and coalesced groups share.
class lanes {
  public:
    lanes() = default;
    explicit lanes(unsigned mask) : mask_(mask) {}
    void sync(SIM_SITE) const { sim::exchange(mask_, 0, sim::WarpKind::SYNC, SIM_HERE); }
    unsigned size() const { return static_cast<unsigned>(__builtin_popcount(mask_)); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const {
        return static_cast<unsigned>(__builtin_popcount(mask_ & ((1u << sim::lane_id()) - 1u)));
    }
    unsigned sim_mask() const { return mask_; }

    template <class T>
    T shfl(T value, unsigned source, SIM_SITE) const {
        return pick(value, source % size(), SIM_HERE);
    }
    template <class T>
    T shfl_up(T value, unsigned delta, SIM_SITE) const {
        const unsigned rank = thread_rank();
        return pick(value, rank < delta ? rank : rank - delta, SIM_HERE);
    }
    template <class T>
    T shfl_down(T value, unsigned delta, SIM_SITE) const {
        const unsigned rank = thread_rank();
        return pick(value, rank + delta >= size() ? rank : rank + delta, SIM_HERE);
    }
    template <class T>
    T shfl_xor(T value, unsigned with, SIM_SITE) const {
        const unsigned rank = thread_rank();
        return pick(value, (rank ^ with) >= size() ? rank : rank ^ with, SIM_HERE);
    }
    int any(int predicate, SIM_SITE) const { return __any_sync(mask_, predicate, SIM_HERE); }
    int all(int predicate, SIM_SITE) const { return __all_sync(mask_, predicate, SIM_HERE); }
    unsigned ballot(int predicate, SIM_SITE) const { return compact(__ballot_sync(mask_, predicate, SIM_HERE)); }
    template <class T>
    unsigned match_any(T value, SIM_SITE) const {
        return compact(__match_any_sync(mask_, value, SIM_HERE));
    }
    template <class T>
    unsigned match_all(T value, int& predicate, SIM_SITE) const {
        return compact(__match_all_sync(mask_, value, &predicate, SIM_HERE));
    }

    // Any trivially copyable type, in pieces of eight bytes.
    template <class T>
    T pick(const T& value, unsigned rank, const char* file, int line) const {
        const unsigned source = details::nth_set(mask_, rank);
        T result;
        const char* from = reinterpret_cast<const char*>(&value);
        char* to = reinterpret_cast<char*>(&result);
        for (size_t at = 0; at < sizeof(T); at += 8) {
            const size_t n = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
            sim::u64 piece = 0;
            std::memcpy(&piece, from + at, n);
            const sim::Slot& slot = sim::exchange(mask_, piece, sim::WarpKind::SHUFFLE, file, line);
            std::memcpy(to + at, &slot.value[source], n);
        }
        return result;
    }

  protected:
    unsigned compact(unsigned bits) const {
        unsigned out = 0, rank = 0;
        for (unsigned left = mask_; left; left &= left - 1, ++rank)
            if (bits >> __builtin_ctz(left) & 1) out |= 1u << rank;
        return out;
    }
    unsigned mask_ = 0;
};

class coalesced_group : public lanes {
  public:
    using lanes::lanes;
    unsigned meta_group_rank() const { return 0; }
    unsigned meta_group_size() const { return 1; }
};
inline coalesced_group coalesced_threads(SIM_SITE) {
    return coalesced_group(sim::active_lanes(SIM_HERE));
}

namespace details {
inline unsigned tile_mask(unsigned size) {
    const unsigned first = sim::lane_id() / size * size;
    const unsigned full = size >= 32 ? ~0u : ((1u << size) - 1u) << first;
    return full & sim::warp_population();
}
}  // namespace details

template <unsigned N, class Parent = void>
class thread_block_tile : public lanes {
  public:
    static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "the simulator has tiles of up to 32 threads");
    thread_block_tile() : lanes(details::tile_mask(N)) {}
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    unsigned thread_rank() const { return sim::lane_id() % N; }
    unsigned meta_group_rank() const { return sim::block->current / N; }
    unsigned meta_group_size() const { return (blockDim.x * blockDim.y * blockDim.z + N - 1) / N; }
};

template <unsigned N, class P>
thread_block_tile<N, P> tiled_partition(const P&) {
    return {};
}
inline coalesced_group tiled_partition(const thread_block&, unsigned size) {
    return coalesced_group(details::tile_mask(size));
}
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
    const unsigned mask = parent.sim_mask(), rank = parent.thread_rank() / size;
    unsigned out = 0, i = 0;
    for (unsigned left = mask; left; left &= left - 1, ++i)
        if (i / size == rank) out |= left & ~(left - 1);
    return coalesced_group(out);
}
template <class G, class T>
coalesced_group labeled_partition(const G& group, T label, SIM_SITE) {
    return coalesced_group(__match_any_sync(group.sim_mask(), label, SIM_HERE));
}
template <class G>
coalesced_group binary_partition(const G& group, bool predicate, SIM_SITE) {
    const unsigned bits = __ballot_sync(group.sim_mask(), predicate, SIM_HERE);
    return coalesced_group(group.sim_mask() & (predicate ? bits : ~bits));
}

template <class G>
void sync(const G& group, SIM_SITE) {
    group.sync(SIM_HERE);
}

// ---- algorithms
// ------------------------------------------------------------------------------------------------------

template <class T = void>
struct plus {
    template <class A>
    A operator()(A a, A b) const {
        return a + b;
    }
};
template <class T = void>
struct less {
    template <class A>
    A operator()(A a, A b) const {
        return b < a ? b : a;
    }
};
template <class T = void>
struct greater {
    template <class A>
    A operator()(A a, A b) const {
        return a < b ? b : a;
    }
};
template <class T = void>
struct bit_and {
    template <class A>
    A operator()(A a, A b) const {
        return a & b;
    }
};
template <class T = void>
struct bit_or {
    template <class A>
    A operator()(A a, A b) const {
        return a | b;
    }
};
template <class T = void>
struct bit_xor {
    template <class A>
    A operator()(A a, A b) const {
        return a ^ b;
    }
};

template <class G, class T, class F>
T reduce(const G& group, T value, F&& combine, SIM_SITE) {
    T result = group.pick(value, 0, SIM_HERE);
    for (unsigned rank = 1; rank < static_cast<const lanes&>(group).size(); ++rank)
        result = combine(result, group.pick(value, rank, SIM_HERE));
    return result;
}
template <class G, class T, class F>
T inclusive_scan(const G& group, T value, F&& combine, SIM_SITE) {
    T result = value;
    const unsigned mine = group.thread_rank(), size = static_cast<const lanes&>(group).size();
    bool started = false;
    for (unsigned rank = 0; rank < size; ++rank) {
        const T other = group.pick(value, rank, SIM_HERE);
        if (rank > mine) continue;
        result = started ? combine(result, other) : other;
        started = true;
    }
    return result;
}
template <class G, class T>
T inclusive_scan(const G& group, T value, SIM_SITE) {
    return inclusive_scan(group, value, plus<T>(), SIM_HERE);
}
template <class G, class T, class F>
T exclusive_scan(const G& group, T value, F&& combine, SIM_SITE) {
    T result{};
    const unsigned mine = group.thread_rank(), size = static_cast<const lanes&>(group).size();
    bool started = false;
    for (unsigned rank = 0; rank < size; ++rank) {
        const T other = group.pick(value, rank, SIM_HERE);
        if (rank >= mine) continue;
        result = started ? combine(result, other) : other;
        started = true;
    }
    return result;
}
template <class G, class T>
T exclusive_scan(const G& group, T value, SIM_SITE) {
    return exclusive_scan(group, value, plus<T>(), SIM_HERE);
}

// The copy is made at the wait, so that a missing wait shows.
template <class G, class T, class S>
void memcpy_async(const G& group, T* target, const S* source, size_t bytes, SIM_SITE) {
    const size_t n = group.num_threads(), rank = group.thread_rank();
    for (size_t at = rank * 4; at + 4 <= bytes; at += n * 4)
        sim::async_copy(reinterpret_cast<char*>(target) + at, reinterpret_cast<const char*>(source) + at, 4, 4,
                        SIM_HERE);
    for (size_t at = bytes / 4 * 4 + rank; at < bytes; at += n)
        sim::async_copy(reinterpret_cast<char*>(target) + at, reinterpret_cast<const char*>(source) + at, 1, 1,
                        SIM_HERE);
    sim::async_commit();
}
template <class G>
void wait(const G& group, SIM_SITE) {
    sim::async_wait(~0u);
    group.sync(SIM_HERE);
}
template <unsigned N, class G>
void wait_prior(const G& group, SIM_SITE) {
    sim::async_wait(N);
    group.sync(SIM_HERE);
}

}  // namespace cooperative_groups
