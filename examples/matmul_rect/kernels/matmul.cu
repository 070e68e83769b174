// C = A B, fp32, A (m, k), B (k, n), row-major; 2048 x 8192 times 8192 x 4096.
//
// What bounds it. 2 m n k = 137 GFLOP, as many as a square product of 4096, against 235 MB: arithmetic alone counts.
//   fp32 units (FMA)          67 TFLOP/s peak, 51 reached: 2.7 ms. This is what eager and torch.compile do.
//   tensor cores, TF32       495 TFLOP/s peak, about 420 reached: 0.33 ms
//   tensor cores, 3xTF32     a third of that, and fp32's accuracy: about 1.1 ms
//
// What the shape changes. The result has half as many tiles as the square product's and each is twice as long: 256
// tiles of 128 x 256 are 1.94 waves of 132 SMs, which is good luck; 512 of 128 x 128 are 3.88. Where a shape does not
// divide so well, kernels that split k over several SMs win, at the price of a reduction through memory. The library
// has both kinds, and its heuristic guesses; timing the candidates on the real operands (kernels/common/cublaslt.h)
// knows.
//
// Precision. The longer k, the more the tensor core's accumulator matters: it truncates at each step, so an error
// against fp32 grows with k. 3xTF32 (kernels/common/matmul_3xtf32.cuh) can renew it every 1024 of k: eight pieces here
// (config 2).
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
