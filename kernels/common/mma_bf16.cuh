// bfloat16 on the tensor cores, accumulated in fp32.
//
// mma.sync m16n8k16: 16x16 by 16x8 fragments spread over a warp; each 32-bit register holds two neighbours along k.
// With group = lane / 4, member = lane % 4:
//   A (16x16)   a[0] (group, 2 member)   a[1] (group + 8, 2 member)   a[2] (group, 2 member + 8)   a[3] (group + 8, 2
//   member + 8) B (16x8)    b[0] (k = 2 member, n = group)                        b[1] (k = 2 member + 8, n = group) C,
//   D        as for mma_tf32
// (PTX ISA, "Matrix fragments for mma.m16n8k16").
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "cp_async.cuh"

namespace kernels {

// Two values rounded to nearest even, `low` in the lower half.
__device__ __forceinline__ uint32_t pack_bf16(float low, float high) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof(bits));
    return bits;
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, "
        "%2, %3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8x8 blocks of 16-bit values, each transposed on the way: lane i points at row i % 8 of block i / 8 and receives,
// of each block, the pair of rows 2 (i % 4), 2 (i % 4) + 1 in column i / 4.
__device__ __forceinline__ void load_matrix_x4_transposed(uint32_t (&value)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(shared_address(row))
                 : "memory");
}

}  // namespace kernels
