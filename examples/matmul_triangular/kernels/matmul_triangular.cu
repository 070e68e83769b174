// C = triu(A B) for upper triangular A and B, fp32, n x n, row-major.
//
// What bounds it. C[r, c] needs only k from r to c:  sum over r <= c of 2 (c - r + 1) = n^3 / 3 FLOP, a sixth of the
// dense product's 2 n^3. At n = 4096: 23 GFLOP, 0.44 ms on the fp32 units, 0.06 ms on the tensor cores in TF32; the
// bytes (the triangles read, the square written: 134 MB) take 0.03 ms. A dense product, which is what eager and
// torch.compile run, takes 2.7 ms, or 0.35 ms in TF32.
//
// The algorithm. Tiles of 128 x 128. Tile (i, j), i <= j, needs the k of blocks i .. j only; tiles below the diagonal
// are zeros to be written. The tiles are of very unequal length, 1 to n / 128 blocks of k, which is what the rest is
// about:
//   - blocks are numbered by descending length, and the hardware hands them out in that order: long ones start first;
//   - the longest tile alone (32 blocks of k) would outlast an even share of the work (23 per resident block), so tiles
//     longer than half of that are cut in two along k. The two halves are added into a C that was zeroed before, with
//     8-byte reductions. (0 + x) + y = (0 + y) + x in floating point as well: the result does not depend on the order.
//   - zero tiles come last and fill the gaps at the end.
// Within a block: four warps of 64 x 64 each, mma.sync m16n8k8; three stages of 32 k are copied by cp.async. Fragments
// of A come by ldmatrix from rows padded to 36 floats, those of B by 4-byte loads from rows padded to 136, both without
// bank conflicts. (16-byte loads of B, with the tile's columns dealt out to fragments accordingly, need a quarter of
// the loads, but bring values of one k together where the instruction wants pairs of one column: twice as many moves
// instead.)
//
// Precision: TF32, rounded to nearest in registers (the tensor core alone would truncate), fp32 accumulation.
//
// config 0: long tiles cut in two. config 1: no tile cut.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/check.h"
#include "common/cp_async.cuh"
#include "common/mma_tf32.cuh"
#include "common/reduce.cuh"

namespace {

constexpr int kTile = 128;
constexpr int kDepth = 32;  // of k per stage
constexpr int kStages = 3;
constexpr int kThreads = 128;
constexpr int kStrideA = kDepth + 4;  // floats; 4 mod 32 banks per row: 8 rows of 16 bytes fill the 32 banks
constexpr int kStrideB = kTile + 8;   // floats; 8 mod 32 banks per row: 4 rows x 8 lanes fill the 32 banks
constexpr int kStageFloats = kTile * kStrideA + kDepth * kStrideB;
constexpr int kSharedBytes = kStages * kStageFloats * static_cast<int>(sizeof(float));  // 107520: two blocks per SM

// What one block does: rows i, columns j (in tiles), k blocks [begin, end). Nothing to multiply: zeros.
struct Piece {
    int i, j, begin, end;
    bool shared;  // with another block: add to C instead of writing it
};

// Is the tile on diagonal d (= j - i) cut in two? Those longer than half the longest are.
__host__ __device__ __forceinline__ bool is_cut(int diagonal, int tiles, bool cut) {
    return cut && diagonal >= (tiles + 1) / 2;
}

// Piece number `index` in order of descending length. Round s, from the longest, holds the tiles of s + 1 blocks that
// are whole, and those of 2 s + 2 and 2 s + 1 blocks that are cut.
__device__ Piece find_piece(int index, int tiles, bool cut) {
    const int rounds = cut ? (tiles + 1) / 2 : tiles;
    for (int s = rounds - 1; s >= 0; --s) {
        if (index < tiles - s) return {index, index + s, index, index + s + 1, false};
        index -= tiles - s;
        for (int diagonal = 2 * s + 1; diagonal >= 2 * s; --diagonal) {
            if (diagonal >= tiles || !is_cut(diagonal, tiles, cut)) continue;
            const int count = 2 * (tiles - diagonal);
            if (index < count) {
                const int i = index / 2;
                const int middle = i + s + 1;
                return index % 2 == 0 ? Piece{i, i + diagonal, i, middle, true}
                                      : Piece{i, i + diagonal, middle, i + diagonal + 1, true};
            }
            index -= count;
        }
    }
    int i = 1;  // the tiles below the diagonal, row by row
    while (index >= i) index -= i++;
    return {i, index, 0, 0, false};
}

// Number of pieces that multiply.
int product_pieces(int tiles, bool cut) {
    int pieces = 0;
    for (int diagonal = 0; diagonal < tiles; ++diagonal)
        pieces += (tiles - diagonal) * (is_cut(diagonal, tiles, cut) ? 2 : 1);
    return pieces;
}

__device__ __forceinline__ void write_zeros(float* c, int n, int i, int j) {
    for (int at = threadIdx.x; at < kTile * kTile / 4; at += kThreads) {
        const int row = i * kTile + at / (kTile / 4);
        const int column = j * kTile + at % (kTile / 4) * 4;
        if (row < n && column < n) {
            *reinterpret_cast<float4*>(c + static_cast<int64_t>(row) * n + column) = make_float4(0.f, 0.f, 0.f, 0.f);
        }
    }
}

// One block per tile that is cut. They are those at least `first` diagonals from the middle.
__global__ void __launch_bounds__(kThreads) zero_cut_tiles_kernel(float* c, int n, int tiles, int first) {
    int index = blockIdx.x;
    int i = 0;
    while (index >= tiles - first - i) index -= tiles - first - i++;
    write_zeros(c, n, i, i + first + index);
}

// Starts the copies of k from `k` on: A (kTile x kDepth) from row `row`, B (kDepth x kTile) from column `column`. n is
// a multiple of 4, so that 16 bytes are inside or outside together. Full: n is a multiple of kTile, nothing is outside.
template <bool Full>
__device__ __forceinline__ void start_copies(float* stage, const float* a, const float* b, int n, int row, int column,
                                             int k) {
    constexpr int kRowsA = kThreads / (kDepth / 4);  // that the block's threads copy at a time
    constexpr int kRowsB = kThreads / (kTile / 4);
    const int a_row = threadIdx.x / (kDepth / 4);
    const int a_column = threadIdx.x % (kDepth / 4) * 4;
    const int b_row = threadIdx.x / (kTile / 4);
    const int b_column = threadIdx.x % (kTile / 4) * 4;
    const float* from_a = a + static_cast<int64_t>(row + a_row) * n + k + a_column;
    const float* from_b = b + static_cast<int64_t>(k + b_row) * n + column + b_column;
    constexpr int kUnroll = Full ? 8 : 1;  // unrolled bounds checks would spill registers
    float* to_a = stage + a_row * kStrideA + a_column;
    float* to_b = stage + kTile * kStrideA + b_row * kStrideB + b_column;
#pragma unroll kUnroll
    for (int r = 0; r < kTile; r += kRowsA, from_a += kRowsA * n, to_a += kRowsA * kStrideA) {
        const bool inside = Full || (row + a_row + r < n && k + a_column < n);
        kernels::cp_async_16_zfill(to_a, inside ? from_a : a, inside);
    }
#pragma unroll kUnroll
    for (int r = 0; r < kDepth; r += kRowsB, from_b += kRowsB * n, to_b += kRowsB * kStrideB) {
        const bool inside = Full || (k + b_row + r < n && column + b_column < n);
        kernels::cp_async_16_zfill(to_b, inside ? from_b : b, inside);
    }
}

template <bool Full>
__global__ void __launch_bounds__(kThreads, 2)
    matmul_triangular_kernel(float* __restrict__ c, const float* __restrict__ a, const float* __restrict__ b, int n,
                             int tiles, bool cut) {
    extern __shared__ float4 shared[];
    float* stages = reinterpret_cast<float*>(shared);
    const Piece piece = find_piece(blockIdx.x, tiles, cut);
    if (piece.begin == piece.end) {
        write_zeros(c, n, piece.i, piece.j);
        return;
    }
    const int row = piece.i * kTile;
    const int column = piece.j * kTile;
    const int warp = threadIdx.x / kernels::kWarpSize;
    const int lane = threadIdx.x % kernels::kWarpSize;
    const int group = lane / 4;
    const int member = lane % 4;
    const int warp_row = warp / 2 * 64;
    const int warp_column = warp % 2 * 64;

    float sum[4][8][4] = {};  // 16-row fragments, 8-column fragments, the thread's four of each
    const int first_k = piece.begin * kTile;
    const int steps = (piece.end - piece.begin) * (kTile / kDepth);
    for (int step = 0; step < kStages - 1; ++step) {  // a piece has at least 4 steps
        start_copies<Full>(stages + step * kStageFloats, a, b, n, row, column, first_k + step * kDepth);
        kernels::cp_async_commit();
    }
    for (int step = 0; step < steps; ++step) {
        kernels::cp_async_wait<kStages - 2>();
        __syncthreads();  // everyone's copies of this step are there, and everyone has left the stage refilled next
        const int ahead = step + kStages - 1;
        if (ahead < steps) {
            start_copies<Full>(stages + ahead % kStages * kStageFloats, a, b, n, row, column, first_k + ahead * kDepth);
        }
        kernels::cp_async_commit();

        const float* stage = stages + step % kStages * kStageFloats;
        // ldmatrix: lanes 0-15 point at rows 0-15 of the fragment's left half, lanes 16-31 of its right half.
        const float* stage_a = stage + (warp_row + lane % 16) * kStrideA + lane / 16 * 4;
        const float* stage_b = stage + kTile * kStrideA + member * kStrideB + warp_column + group;
#pragma unroll
        for (int k = 0; k < kDepth; k += 8) {
            uint32_t fragment_b[8][2];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                fragment_b[j][0] = kernels::to_tf32(stage_b[k * kStrideB + j * 8]);
                fragment_b[j][1] = kernels::to_tf32(stage_b[(k + 4) * kStrideB + j * 8]);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                uint32_t fragment_a[4];
                kernels::load_matrix_x4(fragment_a, stage_a + i * 16 * kStrideA + k);
#pragma unroll
                for (uint32_t& value : fragment_a) value = kernels::to_tf32(__uint_as_float(value));
#pragma unroll
                for (int j = 0; j < 8; ++j) kernels::mma_tf32(sum[i][j], fragment_a, fragment_b[j]);
            }
        }
    }
    kernels::cp_async_wait<0>();

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int r = row + warp_row + i * 16 + half * 8 + group;
                const int col = column + warp_column + j * 8 + member * 2;
                if (!Full && (r >= n || col >= n)) continue;
                const float2 pair =
                    make_float2(r <= col ? sum[i][j][half * 2] : 0.f, r <= col + 1 ? sum[i][j][half * 2 + 1] : 0.f);
                float2* at = reinterpret_cast<float2*>(c + static_cast<int64_t>(r) * n + col);
                if (piece.shared) {
                    atomicAdd(at, pair);
                } else {
                    *at = pair;
                }
            }
        }
    }
}

}  // namespace

// n a multiple of 4, at most 16384 * 128; all pointers 16-byte aligned; c overlaps neither a nor b.
extern "C" void matmul_triangular_launcher(float* c, const float* a, const float* b, int n, int config,
                                           cudaStream_t stream) {
    if (config < 0 || config > 1) {
        kernels::throw_error("matmul_triangular: config must be 0 or 1, got %d", config);
    }
    const bool cut = config == 0;
    const int tiles = (n + kTile - 1) / kTile;
    const int first_cut = (tiles + 1) / 2;
    const int cut_tiles = cut ? (tiles - first_cut) * (tiles - first_cut + 1) / 2 : 0;
    if (cut_tiles > 0) {
        zero_cut_tiles_kernel<<<cut_tiles, kThreads, 0, stream>>>(c, n, tiles, first_cut);
        CUDA_CHECK_LAUNCH();
    }
    const int blocks = product_pieces(tiles, cut) + tiles * (tiles - 1) / 2;
    const auto kernel = n % kTile == 0 ? matmul_triangular_kernel<true> : matmul_triangular_kernel<false>;
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
    kernel<<<blocks, kThreads, kSharedBytes, stream>>>(c, a, b, n, tiles, cut);
    CUDA_CHECK_LAUNCH();
}
