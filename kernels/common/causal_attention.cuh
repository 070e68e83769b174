// Causal attention on the tensor cores without a score matrix in memory:
//   out[q] = sum over k <= q of p[q, k] v[k],   p[q, :] = softmax over k <= q of (query[q] . key[k]) * scale
// per batch and head; queries, keys and values fp32 in memory, TF32 or bf16 in the products, fp32 in between.
//
// A block owns 128 queries and walks over the keys in tiles of 64 (Dao, "FlashAttention-2", 2023). Each warp keeps its
// queries, their running output, maximum and sum in registers; scores are computed, turned into probabilities and
// consumed as the next product's operand without leaving them. Tiles wholly above the diagonal are never visited.
//
//   copy      fp32 keys and values of the next tile arrive by cp.async in a staging area while this one is worked on
//   convert   each thread rounds what it copied itself (no barrier) and stores it in one of two tiles in the layout
//   that the
//             tensor cores read without bank conflicts: each value is rounded once, not once per warp that uses it
//   barrier   one per tile
//   multiply  scores = Q K^T; softmax step; output = output * correction + P V
//
// The probabilities come out of the first product in the layout of an accumulator and are wanted in that of an operand.
// For bf16 the two agree. For TF32 they differ only in the order of k, which is free: k index i of the fragment is
// taken to be key 2 i (i < 4) or 2 i - 7, and V's fragment is read in the same order.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "check.h"
#include "cp_async.cuh"
#include "mma_bf16.cuh"
#include "mma_tf32.cuh"
#include "online_softmax.cuh"
#include "reduce.cuh"

namespace kernels {

constexpr int kAttentionQueries = 128;  // per block
constexpr int kAttentionKeys = 64;      // per tile

// A tensor (batch, head, position, HeadDim) of any strides but the last, which is 1; strides in elements, multiples
// of 4.
struct AttentionStrides {
    int64_t batch, head, position;
};

struct AttentionArguments {
    float* out;
    const float* query;
    const float* key;
    const float* value;
    AttentionStrides out_strides;
    AttentionStrides in_strides;  // of query, key and value alike
    int heads;
    int length;
    float scale;  // of the scores, times log2(e): exponentials are taken to base 2
};

// RowFragments: 16-query fragments per warp. Two make use of each key and value fragment twice, where registers allow.
template <int HeadDim, int RowFragments, bool Bf16>
struct AttentionShape {
    static constexpr int kThreads = kAttentionQueries / (16 * RowFragments) * kWarpSize;
    static constexpr int kElementBytes = Bf16 ? 2 : 4;
    // Rows are padded by 16 bytes: 8 rows of 16 bytes, and for TF32 4 pairs of rows x 8 columns, fill the 32 banks.
    static constexpr int kRowBytes = HeadDim * kElementBytes + 16;
    static constexpr int kTileBytes = kAttentionKeys * kRowBytes;
    static constexpr int kStagingVectors = kAttentionKeys * HeadDim / 4;  // of keys, and as many of values
    static constexpr int kStagingBytes = 2 * kStagingVectors * 16;
    static constexpr int kSharedBytes = kStagingBytes + 2 * 2 * kTileBytes;
    static constexpr int kStepsQk = HeadDim * kElementBytes / 32;  // an operand fragment is 32 bytes of k deep
    static constexpr int kStepsPv = kAttentionKeys * kElementBytes / 32;
    static constexpr int kBlocksPerMultiprocessor = kThreads <= 128 ? 2 : 1;
    static constexpr int kCopyRows = kThreads / 8;
    static_assert(kAttentionKeys % kCopyRows == 0 && HeadDim % 32 == 0);
};

template <bool Bf16>
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if constexpr (Bf16) {
        mma_bf16(d, a, b);
    } else {
        mma_tf32(d, a, b);
    }
}

template <int HeadDim, int RowFragments, bool Bf16>
__global__ void __launch_bounds__(AttentionShape<HeadDim, RowFragments, Bf16>::kThreads,
                                  AttentionShape<HeadDim, RowFragments, Bf16>::kBlocksPerMultiprocessor)
    causal_attention_kernel(AttentionArguments arguments) {
    using Shape = AttentionShape<HeadDim, RowFragments, Bf16>;
    constexpr int kKeyFragments = kAttentionKeys / 8;
    constexpr int kOutFragments = HeadDim / 8;
    extern __shared__ float4 shared[];
    float4* staging = shared;  // keys, then values; a thread reads only what it copied
    char* tiles = reinterpret_cast<char*>(shared) + Shape::kStagingBytes;  // [2][keys, values][kTileBytes]

    const int thread = threadIdx.x;
    const int lane = thread % kWarpSize;
    const int group = lane / 4;
    const int member = lane % 4;
    const int length = arguments.length;
    // Blocks of one head run side by side, so that its keys and values come from L2; the longest first.
    const int first_query = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kAttentionQueries;
    const int warp_query = first_query + thread / kWarpSize * 16 * RowFragments;
    const int batch = blockIdx.y / arguments.heads;
    const int head = blockIdx.y % arguments.heads;
    const int64_t in_offset = batch * arguments.in_strides.batch + head * arguments.in_strides.head;
    const float* query = arguments.query + in_offset;
    const float* key = arguments.key + in_offset;
    const float* value = arguments.value + in_offset;
    const int64_t row_stride = arguments.in_strides.position;

    // Eight threads copy 128 bytes of a row; a thread keeps to its rows and to its place within the 128 bytes.
    const int copy_row = thread / 8;
    const int copy_column = thread % 8 * 4;
    const auto start_copies = [&](int first_key) {
        const int64_t offset = (first_key + copy_row) * row_stride + copy_column;
        const float* from_key = key + offset;
        const float* from_value = value + offset;
        float4* to = staging + thread;
#pragma unroll
        for (int row = 0; row < kAttentionKeys; row += Shape::kCopyRows) {
            const bool inside = first_key + copy_row + row < length;
#pragma unroll
            for (int column = 0; column < HeadDim; column += 32, to += Shape::kThreads) {
                cp_async_16_zfill(to, inside ? from_key + column : key, inside);
                cp_async_16_zfill(to + Shape::kStagingVectors, inside ? from_value + column : value, inside);
            }
            from_key += Shape::kCopyRows * row_stride;
            from_value += Shape::kCopyRows * row_stride;
        }
        cp_async_commit();
    };
    const auto convert = [&](char* tile) {
        const float4* from = staging + thread;
        char* to = tile + copy_row * Shape::kRowBytes + copy_column * Shape::kElementBytes;
#pragma unroll
        for (int matrix = 0; matrix < 2; ++matrix) {
#pragma unroll
            for (int row = 0; row < kAttentionKeys; row += Shape::kCopyRows) {
#pragma unroll
                for (int column = 0; column < HeadDim; column += 32, from += Shape::kThreads) {
                    char* place =
                        to + (matrix * kAttentionKeys + row) * Shape::kRowBytes + column * Shape::kElementBytes;
                    const float4 four = *from;
                    if constexpr (Bf16) {
                        *reinterpret_cast<uint2*>(place) =
                            make_uint2(pack_bf16(four.x, four.y), pack_bf16(four.z, four.w));
                    } else {
                        *reinterpret_cast<uint4*>(place) =
                            make_uint4(to_tf32(four.x), to_tf32(four.y), to_tf32(four.z), to_tf32(four.w));
                    }
                }
            }
        }
    };

    start_copies(0);

    // Queries, scaled, as operand fragments.
    uint32_t query_fragment[RowFragments][Shape::kStepsQk][4];
#pragma unroll
    for (int r = 0; r < RowFragments; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = warp_query + r * 16 + half * 8 + group;
            const float* source = query + row * row_stride;
            const float scale = row < length ? arguments.scale : 0.f;
            if (row >= length) source = query;
#pragma unroll
            for (int step = 0; step < Shape::kStepsQk; ++step) {
#pragma unroll
                for (int part = 0; part < 2; ++part) {
                    uint32_t& fragment = query_fragment[r][step][part * 2 + half];
                    if constexpr (Bf16) {
                        const float2 pair =
                            *reinterpret_cast<const float2*>(source + step * 16 + part * 8 + member * 2);
                        fragment = pack_bf16(pair.x * scale, pair.y * scale);
                    } else {
                        fragment = to_tf32(source[step * 8 + part * 4 + member] * scale);
                    }
                }
            }
        }
    }

    float out[RowFragments][kOutFragments][4] = {};
    float max[RowFragments][2];
    float sum[RowFragments][2] = {};  // this thread's share; the four lanes of a row add up at the end
#pragma unroll
    for (int r = 0; r < RowFragments; ++r) max[r][0] = max[r][1] = -INFINITY;

    const int end_key = min(first_query + kAttentionQueries, length);
    for (int first_key = 0, buffer = 0; first_key < end_key; first_key += kAttentionKeys, buffer ^= 1) {
        char* tile = tiles + buffer * 2 * Shape::kTileBytes;
        cp_async_wait<0>();
        convert(tile);  // nobody reads this buffer any more: its readers have passed the last barrier
        if (first_key + kAttentionKeys < end_key) start_copies(first_key + kAttentionKeys);
        __syncthreads();
        if (first_key > warp_query + 16 * RowFragments - 1) continue;  // above the diagonal for this whole warp

        // Scores. ldmatrix: lanes 0-7 and 8-15 point at the two halves (of k) of eight keys, 16-31 at those of the next
        // eight.
        float score[RowFragments][kKeyFragments][4] = {};
        const char* keys = tile + (lane / 16 * 8 + lane % 8) * Shape::kRowBytes + lane / 8 % 2 * 16;
#pragma unroll
        for (int step = 0; step < Shape::kStepsQk; ++step) {
#pragma unroll
            for (int n = 0; n < kKeyFragments; n += 2) {
                uint32_t both[4];
                load_matrix_x4(both, reinterpret_cast<const float*>(keys + n * 8 * Shape::kRowBytes + step * 32));
                const uint32_t first[2] = {both[0], both[1]};
                const uint32_t second[2] = {both[2], both[3]};
#pragma unroll
                for (int r = 0; r < RowFragments; ++r) {
                    mma<Bf16>(score[r][n], query_fragment[r][step], first);
                    mma<Bf16>(score[r][n + 1], query_fragment[r][step], second);
                }
            }
        }

        // Softmax step: new maximum, correction of what was summed against the old one, probabilities in place of
        // scores.
        const bool on_diagonal = first_key + kAttentionKeys - 1 > warp_query;
#pragma unroll
        for (int r = 0; r < RowFragments; ++r) {
            if (on_diagonal) {
#pragma unroll
                for (int n = 0; n < kKeyFragments; ++n) {
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        const int row = warp_query + r * 16 + e / 2 * 8 + group;
                        const int column = first_key + n * 8 + member * 2 + e % 2;
                        if (column > row) score[r][n][e] = -INFINITY;
                    }
                }
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                float new_max = max[r][half];
#pragma unroll
                for (int n = 0; n < kKeyFragments; ++n) {
                    new_max = fmaxf(new_max, fmaxf(score[r][n][half * 2], score[r][n][half * 2 + 1]));
                }
                new_max = fmaxf(new_max, __shfl_xor_sync(kFullMask, new_max, 1));
                new_max = fmaxf(new_max, __shfl_xor_sync(kFullMask, new_max, 2));
                // Key 0 is in every row's first tile: the maximum is finite from there on.
                const float correction = exp2_flushed(max[r][half] - new_max);
                max[r][half] = new_max;
                float tile_sum = 0.f;
#pragma unroll
                for (int n = 0; n < kKeyFragments; ++n) {
#pragma unroll
                    for (int e = half * 2; e < half * 2 + 2; ++e) {
                        score[r][n][e] = exp2_flushed(score[r][n][e] - new_max);
                        tile_sum += score[r][n][e];
                    }
                }
                sum[r][half] = sum[r][half] * correction + tile_sum;
#pragma unroll
                for (int n = 0; n < kOutFragments; ++n) {
                    out[r][n][half * 2] *= correction;
                    out[r][n][half * 2 + 1] *= correction;
                }
            }
        }

        // Output.
        const char* values = tile + Shape::kTileBytes;
#pragma unroll
        for (int step = 0; step < Shape::kStepsPv; ++step) {
            uint32_t probability[RowFragments][4];
#pragma unroll
            for (int r = 0; r < RowFragments; ++r) {
                if constexpr (Bf16) {
                    const float (&low)[4] = score[r][step * 2];
                    const float (&high)[4] = score[r][step * 2 + 1];
                    probability[r][0] = pack_bf16(low[0], low[1]);
                    probability[r][1] = pack_bf16(low[2], low[3]);
                    probability[r][2] = pack_bf16(high[0], high[1]);
                    probability[r][3] = pack_bf16(high[2], high[3]);
                } else {
                    const float (&p)[4] = score[r][step];
                    probability[r][0] = to_tf32(p[0]);
                    probability[r][1] = to_tf32(p[2]);
                    probability[r][2] = to_tf32(p[1]);
                    probability[r][3] = to_tf32(p[3]);
                }
            }
            if constexpr (Bf16) {
                // ldmatrix: lanes 0-15 point at the step's 16 keys, lanes 16-31 at the same keys eight columns on.
                const char* row = values + (step * 16 + lane % 16) * Shape::kRowBytes + lane / 16 * 16;
#pragma unroll
                for (int n = 0; n < kOutFragments; n += 2) {
                    uint32_t both[4];
                    load_matrix_x4_transposed(both, row + n * 16);
                    const uint32_t first[2] = {both[0], both[1]};
                    const uint32_t second[2] = {both[2], both[3]};
#pragma unroll
                    for (int r = 0; r < RowFragments; ++r) {
                        mma<Bf16>(out[r][n], probability[r], first);
                        mma<Bf16>(out[r][n + 1], probability[r], second);
                    }
                }
            } else {
                const char* row = values + (step * 8 + member * 2) * Shape::kRowBytes + group * 4;
#pragma unroll
                for (int n = 0; n < kOutFragments; ++n) {
                    const uint32_t fragment[2] = {*reinterpret_cast<const uint32_t*>(row + n * 32),
                                                  *reinterpret_cast<const uint32_t*>(row + n * 32 + Shape::kRowBytes)};
#pragma unroll
                    for (int r = 0; r < RowFragments; ++r) mma<Bf16>(out[r][n], probability[r], fragment);
                }
            }
        }
    }

    float* result = arguments.out + batch * arguments.out_strides.batch + head * arguments.out_strides.head;
#pragma unroll
    for (int r = 0; r < RowFragments; ++r) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float total = sum[r][half];
            total += __shfl_xor_sync(kFullMask, total, 1);
            total += __shfl_xor_sync(kFullMask, total, 2);
            const int row = warp_query + r * 16 + half * 8 + group;
            if (row >= length) continue;
            const float inverse = 1.f / total;
            float* place = result + row * arguments.out_strides.position + member * 2;
#pragma unroll
            for (int n = 0; n < kOutFragments; ++n) {
                *reinterpret_cast<float2*>(place + n * 8) =
                    make_float2(out[r][n][half * 2] * inverse, out[r][n][half * 2 + 1] * inverse);
            }
        }
    }
}

template <int HeadDim, int RowFragments, bool Bf16>
void launch_causal_attention(const AttentionArguments& arguments, int batches, cudaStream_t stream) {
    using Shape = AttentionShape<HeadDim, RowFragments, Bf16>;
    const auto kernel = causal_attention_kernel<HeadDim, RowFragments, Bf16>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kSharedBytes));
    const dim3 grid(static_cast<unsigned>((arguments.length + kAttentionQueries - 1) / kAttentionQueries),
                    static_cast<unsigned>(batches * arguments.heads));
    kernel<<<grid, Shape::kThreads, Shape::kSharedBytes, stream>>>(arguments);
    CUDA_CHECK_LAUNCH();
}

}  // namespace kernels
