// Poison on the GPU: lay it at the speed of memory, and see what is left of it.
#include <algorithm>

#include "context.h"
#include "poison.h"
#include "poison_pattern.h"
#include "walker.h"

namespace {

constexpr int kThreads = 256;
constexpr int kDamageBlocks = 16;

// Unit is the widest store that the address allows; a word of the pattern holds 8 / sizeof(Unit) of them.
template <class Unit>
__global__ void lay_poison(Unit* data, int64_t units, int32_t kind, uint64_t seed) {
    constexpr int kPerWord = 8 / sizeof(Unit);
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < units; i += step) {
        const uint64_t word = poison_word(kind, seed, uint64_t(i) / kPerWord);
        data[i] = Unit(word >> (i % kPerWord * sizeof(Unit) * 8));
    }
}

__global__ void lay_poison_wide(ulonglong2* data, int64_t units, int32_t kind, uint64_t seed) {
    const int64_t step = int64_t(gridDim.x) * blockDim.x;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < units; i += step)
        data[i] = make_ulonglong2(poison_word(kind, seed, 2 * i), poison_word(kind, seed, 2 * i + 1));
}

__global__ void lay_poison_tail(unsigned char* data, int64_t begin, int64_t end, int32_t kind, uint64_t seed) {
    const int64_t i = begin + threadIdx.x;
    if (i < end) data[i] = static_cast<unsigned char>(poison_word(kind, seed, uint64_t(i) / 8) >> (i % 8 * 8));
}

template <class Unit>
int64_t lay_units(void* data, int64_t nbytes, int blocks, cudaStream_t stream, int32_t kind, uint64_t seed) {
    const int64_t units = nbytes / int64_t(sizeof(Unit));
    if (units > 0) {
        const int needed = int(std::min<int64_t>(blocks, (units + kThreads - 1) / kThreads));
        if constexpr (sizeof(Unit) == 16)
            lay_poison_wide<<<needed, kThreads, 0, stream>>>(static_cast<Unit*>(data), units, kind, seed);
        else
            lay_poison<Unit><<<needed, kThreads, 0, stream>>>(static_cast<Unit*>(data), units, kind, seed);
    }
    return units * int64_t(sizeof(Unit));
}

// Sum, minimum and maximum over the block, in thread 0.
__device__ void reduce_damage(Damage& d) {
    __shared__ Damage of_warp[kThreads / 32];
    const auto shuffled = [](Damage d, int offset) {
        return Damage{__shfl_down_sync(~0u, d.bytes, offset), __shfl_down_sync(~0u, d.first, offset),
                      __shfl_down_sync(~0u, d.last, offset)};
    };
    const auto join = [](Damage& d, const Damage& o) {
        d.bytes += o.bytes;
        d.first = o.first < d.first ? o.first : d.first;
        d.last = o.last > d.last ? o.last : d.last;
    };
    for (int offset = 16; offset > 0; offset /= 2) join(d, shuffled(d, offset));
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = d;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < kThreads / 32; ++w) join(d, of_warp[w]);
}

__global__ void find_damage(const Span* spans, Damage* parts) {
    const Span span = spans[blockIdx.y];
    const unsigned char* bytes = static_cast<const unsigned char*>(span.data);
    Damage found = {0, INT64_MAX, -1};
    for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < span.nbytes; i += kDamageBlocks * kThreads) {
        if (holds_poison(span.kind, span.seed, i, bytes + i, 1)) continue;
        found.bytes += 1;
        found.first = found.first == INT64_MAX ? i : found.first;
        found.last = i;
    }
    reduce_damage(found);
    if (threadIdx.x == 0) parts[blockIdx.y * kDamageBlocks + blockIdx.x] = found;
}

__global__ void count_poison(const __grid_constant__ Walk walk, int32_t kind, uint64_t seed, Damage* parts) {
    const int width = item_size(walk.actual_dtype);
    const int64_t step = int64_t(gridDim.x) * kThreads;
    const int64_t begin = int64_t(blockIdx.x) * kThreads + threadIdx.x;
    Damage found = {0, INT64_MAX, -1};
    if (begin < walk.count) {
        Walker<0> walker(walk, begin, step);
        for (int64_t i = begin; i < walk.count; i += step, walker.advance(walk)) {
            const unsigned char* place = static_cast<const unsigned char*>(walk.actual) + walker.actual * width;
            found.bytes += holds_poison(kind, seed, uint64_t(walker.actual) * width, place, width);
        }
    }
    reduce_damage(found);
    if (threadIdx.x == 0) parts[blockIdx.x] = found;
}

}  // namespace

// Fills `nbytes` from `data` on with the poison of (kind, seed), on `stream`; does not wait.
NATIVE_API int32_t native_poison_cuda(int32_t device, cudaStream_t stream, void* data, int64_t nbytes, int32_t kind,
                                      uint64_t seed) {
    ENTER(device);
    const int blocks = 16 * multiprocessors(device);
    const uintptr_t address = reinterpret_cast<uintptr_t>(data);
    int64_t done;
    if (address % 16 == 0)
        done = lay_units<ulonglong2>(data, nbytes, blocks, stream, kind, seed);
    else if (address % 8 == 0)
        done = lay_units<uint64_t>(data, nbytes, blocks, stream, kind, seed);
    else if (address % 4 == 0)
        done = lay_units<uint32_t>(data, nbytes, blocks, stream, kind, seed);
    else if (address % 2 == 0)
        done = lay_units<uint16_t>(data, nbytes, blocks, stream, kind, seed);
    else
        done = lay_units<uint8_t>(data, nbytes, blocks, stream, kind, seed);
    RUNTIME(cudaGetLastError());
    if (done < nbytes) {
        lay_poison_tail<<<1, 32, 0, stream>>>(static_cast<unsigned char*>(data), done, nbytes, kind, seed);
        RUNTIME(cudaGetLastError());
    }
    return kOk;
}

// Which bytes of each span differ from the poison they were given; waits for `stream`. Meant for guard bands: a few
// blocks per span.
NATIVE_API int32_t native_damage_cuda(int32_t device, cudaStream_t stream, const Span* spans, int32_t count,
                                      Damage* damage) {
    constexpr int32_t kAtOnce = 1024;
    ENTER(device);
    const Mailbox mailbox(kAtOnce * (sizeof(Span) + kDamageBlocks * sizeof(Damage)));
    if (mailbox.memory == nullptr) return mailbox.status;
    Span* asked = static_cast<Span*>(mailbox.memory);
    Damage* parts = reinterpret_cast<Damage*>(asked + kAtOnce);
    for (int32_t begin = 0; begin < count; begin += kAtOnce) {
        const int32_t now = std::min(kAtOnce, count - begin);
        std::copy(spans + begin, spans + begin + now, asked);
        find_damage<<<dim3(kDamageBlocks, now), kThreads, 0, stream>>>(asked, parts);
        RUNTIME(cudaGetLastError());
        RUNTIME(cudaStreamSynchronize(stream));
        for (int32_t s = 0; s < now; ++s) {
            Damage all = {0, INT64_MAX, -1};
            for (int b = 0; b < kDamageBlocks; ++b) {
                const Damage& part = parts[s * kDamageBlocks + b];
                all.bytes += part.bytes;
                all.first = std::min(all.first, part.first);
                all.last = std::max(all.last, part.last);
            }
            damage[begin + s] = all;
        }
    }
    return kOk;
}

// How many elements of the walk's `actual` hold the poison exactly; waits for `stream`.
NATIVE_API int32_t native_count_poison_cuda(int32_t device, cudaStream_t stream, const Walk* walk, int32_t kind,
                                            uint64_t seed, int64_t* count) {
    ENTER(device);
    const int blocks = int(std::min<int64_t>(8 * multiprocessors(device), (walk->count + kThreads - 1) / kThreads));
    const Mailbox mailbox(blocks * sizeof(Damage));
    if (mailbox.memory == nullptr) return mailbox.status;
    Damage* parts = static_cast<Damage*>(mailbox.memory);
    count_poison<<<blocks, kThreads, 0, stream>>>(*walk, kind, seed, parts);
    RUNTIME(cudaGetLastError());
    RUNTIME(cudaStreamSynchronize(stream));
    *count = 0;
    for (int b = 0; b < blocks; ++b) *count += parts[b].bytes;
    return kOk;
}
