// Causal attention, fp32 in and out:  out = softmax(Q K^T / sqrt(d) + mask) V,  mask = -inf above the diagonal;
// Q, K, V, out (batch, heads, length, d).
//
// What bounds it. At 16 x 16 heads of 2048 x 64: the causal half of two products is 137 GFLOP, 0.35 ms on the tensor
// cores at 400 TFLOP/s TF32, half of that in bf16; on the fp32 units 2.7 ms. Q, K, V and out are 537 MB, 0.125 ms.
// Exponentials: 5.4e8, 0.15 ms at 16 per clock and SM, beside the products. The scores, were they written, would be 4.3
// GB, several times over: that is what must not happen.
//
// The algorithm, and how the work is laid out on the tensor cores: kernels/common/causal_attention.cuh. At d = 64 a
// warp has 32 queries: with 16, each value fetched from shared memory would feed one product of 16 x 8 x 8 only, and
// shared memory (128 bytes per clock) would hold the tensor cores at half their rate.
//
// Precision. TF32: 10 bits of mantissa in Q, K, V and the probabilities, error about 3e-4 of the values. bf16: 7 bits,
// about 3e-3. Maximum, sum and accumulation are fp32 in both.
//
// config 0: TF32. config 1: bf16. config 2: TF32, 16 queries per warp and 8 warps. config 3: bf16, 16 queries, 8 warps.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "common/causal_attention.cuh"
#include "common/check.h"

namespace {

constexpr int kHeadDim = 64;

}  // namespace

// Contiguous (batches, heads, length, 64), 16-byte aligned, out overlapping none of the others; every size at least 1.
extern "C" void attention_causal_launcher(float* out, const float* query, const float* key, const float* value,
                                          int batches, int heads, int length, int config, cudaStream_t stream) {
    kernels::AttentionArguments arguments{};
    arguments.out = out;
    arguments.query = query;
    arguments.key = key;
    arguments.value = value;
    arguments.in_strides.position = kHeadDim;
    arguments.in_strides.head = static_cast<int64_t>(length) * kHeadDim;
    arguments.in_strides.batch = heads * arguments.in_strides.head;
    arguments.out_strides = arguments.in_strides;
    arguments.heads = heads;
    arguments.length = length;
    arguments.scale = kernels::kLog2E / std::sqrt(static_cast<float>(kHeadDim));
    switch (config) {
        case 0:
            kernels::launch_causal_attention<kHeadDim, 2, false>(arguments, batches, stream);
            break;
        case 1:
            kernels::launch_causal_attention<kHeadDim, 2, true>(arguments, batches, stream);
            break;
        case 2:
            kernels::launch_causal_attention<kHeadDim, 1, false>(arguments, batches, stream);
            break;
        case 3:
            kernels::launch_causal_attention<kHeadDim, 1, true>(arguments, batches, stream);
            break;
        default:
            kernels::throw_error("attention_causal: config must be 0 to 3, got %d", config);
    }
}
