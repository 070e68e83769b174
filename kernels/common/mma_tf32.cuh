// TF32 on the tensor cores: fp32 with 10 bits of mantissa, products accumulated in fp32.
//
// mma.sync m16n8k8 multiplies a 16x8 by an 8x8 fragment spread over a warp. With group = lane / 4, member = lane % 4:
//   A (16x8, row-major)   a[0] (group, member)    a[1] (group + 8, member)   a[2] (group, member + 4)   a[3] (group +
//   8, member + 4) B (8x8)               b[0] (k = member, n = group)                       b[1] (k = member + 4, n =
//   group) C, D (16x8)           c[0..1] (group, 2 member + 0..1)                   c[2..3] (group + 8, 2 member +
//   0..1)
// (PTX ISA, "Matrix fragments for mma.m16n8k8").
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cp_async.cuh"

namespace kernels {

// Rounds to TF32, nearest, ties away from zero. The tensor core by itself would cut the low bits off, which biases
// every product of positive numbers by 0.07 %.
__device__ __forceinline__ uint32_t to_tf32(float value) {
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Four 8x4 blocks of 32-bit values from shared memory (ldmatrix moves 8 rows of 16 bytes): lane i gives the address of
// row i % 8 of block i / 8, 16-byte aligned, and receives element (i / 4, i % 4) of each block.
__device__ __forceinline__ void load_matrix_x4(uint32_t (&value)[4], const float* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(value[0]), "=r"(value[1]), "=r"(value[2]), "=r"(value[3])
                 : "r"(shared_address(row))
                 : "memory");
}

}  // namespace kernels
