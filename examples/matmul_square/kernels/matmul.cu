// C = A B, fp32, A (m, k), B (k, n), row-major; 4096 x 4096 x 4096.
//
// What bounds it. 2 m n k = 137 GFLOP against 201 MB: 680 FLOP per byte, so arithmetic alone counts.
//   fp32 units (FMA)          67 TFLOP/s peak, 51 reached: 2.7 ms. This is what eager and torch.compile do.
//   tensor cores, TF32       495 TFLOP/s peak, about 400 reached: 0.34 ms
//   tensor cores, 3xTF32     a third of that, and fp32's accuracy: about 1.1 ms
//
// The algorithm. The library's best kernels are within a few per cent of the hardware at this size; what is left is to
// let it use the tensor cores and to choose among its kernels by timing them on the real operands
// (kernels/common/cublaslt.h) instead of trusting the order its heuristic gives. 3xTF32 splits each operand into two
// TF32 numbers and adds three products (kernels/common/matmul_3xtf32.cuh); the splitting is one pass over A and B, 0.1
// ms.
//
// Precision. TF32 keeps 10 bits of mantissa: an error of about 3e-4 of the result's rms at random signs. For operands
// in [0, 1), as here, the result is large (k / 4) and the relative error far below 1e-2. Of products of N(0, 1)
// matrices, whose sums cancel, one element in a hundred would miss an element-wise 1e-2: that is what configs 1 and 2
// are for.
//
// config 0: TF32. config 1: 3xTF32. config 2: 3xTF32, the accumulator renewed every 1024 of k. config 3: strict fp32.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/matmul.cuh"

// Bytes of scratch memory the launcher needs beside the library's workspace.
extern "C" int64_t matmul_scratch_bytes(int64_t m, int64_t n, int64_t k, int config) {
    return kernels::matmul_scratch_bytes(m, n, k, config);
}

// m, n and k at least 1; `out` overlaps neither operand. Throws kernels::Error.
extern "C" void matmul_launcher(float* out, const float* a, const float* b, int64_t m, int64_t n, int64_t k, int config,
                                void* scratch, void* workspace, int64_t workspace_bytes, cudaStream_t stream) {
    kernels::matmul(out, a, b, m, n, k, config, scratch, workspace, workspace_bytes, stream);
}
