import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/types.h>

__device__ float gated(float x, float gate) {
    return __fdividef(x, 1.0f + __expf(-gate));  // a few ulp; the exact division takes more time than the memory
}

// y[i] = x[i] * sigmoid(gate[i]). Four elements a thread, as one 16-byte access where the pointers allow it.
__global__ void gated_kernel(float* y, const float* x, const float* gate, int64_t count, bool wide) {
    const int64_t i = 4 * (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x);
    if (wide && i + 4 <= count) {
        const float4 a = *reinterpret_cast<const float4*>(x + i);
        const float4 b = *reinterpret_cast<const float4*>(gate + i);
        *reinterpret_cast<float4*>(y + i) =
            make_float4(gated(a.x, b.x), gated(a.y, b.y), gated(a.z, b.z), gated(a.w, b.w));
    } else {
        for (int64_t j = i; j < i + 4 && j < count; ++j) y[j] = gated(x[j], gate[j]);
    }
}

bool aligned(const torch::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.data_ptr()) % 16 == 0; }

torch::Tensor gated(torch::Tensor x, torch::Tensor gate) {
    TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == torch::kFloat32, "x: contiguous float32 CUDA");
    TORCH_CHECK(gate.is_cuda() && gate.is_contiguous() && gate.scalar_type() == torch::kFloat32,
                "gate: contiguous float32 CUDA");
    TORCH_CHECK(x.sizes() == gate.sizes(), "x is ", x.sizes(), ", but gate is ", gate.sizes());
    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    const int64_t count = x.numel();
    if (count == 0) return y;
    const int64_t blocks = (count + 1023) / 1024;
    TORCH_CHECK(blocks <= INT32_MAX, "x has ", count, " elements, more than one launch covers");
    gated_kernel<<<static_cast<unsigned int>(blocks), 256, 0, c10::cuda::getCurrentCUDAStream().stream()>>>(
        y.data_ptr<float>(), x.data_ptr<float>(), gate.data_ptr<float>(), count,
        aligned(x) && aligned(gate) && aligned(y));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return y;
}
"""

# Built into a folder named after the content of this file: unchanged, it is built once.
extension = load_inline(
    name="gated",
    cpp_sources="torch::Tensor gated(torch::Tensor x, torch::Tensor gate);",
    cuda_sources=CUDA,
    functions=["gated"],
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return extension.gated(x, gate)
