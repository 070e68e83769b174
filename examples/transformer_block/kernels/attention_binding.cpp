// Python binding of attention.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" void attention_launcher(float* out, const float* joined, int batches, int length, int heads,
                                   cudaStream_t stream);

torch::Tensor attention(const torch::Tensor& joined, int64_t heads) {
    constexpr const char* op = "attention";
    constexpr int64_t kHeadDim = 96;
    kernels::check_tensor(joined, op, "joined", torch::kFloat32);  // (batch, length, 3 * heads * 96)
    TORCH_CHECK(heads > 0 && joined.dim() == 3 && joined.size(2) == 3 * heads * kHeadDim, op,
                ": joined must be (batch, length, 3 * heads * ", kHeadDim, "), but has shape ", joined.sizes(), " for ",
                heads, " heads");
    kernels::check_aligned(joined, op, "joined", 16);
    const int64_t batch = joined.size(0);
    const int64_t length = joined.size(1);
    TORCH_CHECK(batch * heads <= 65535, op, ": batch * heads must be at most 65535, but is ", batch * heads);
    TORCH_CHECK(length <= (int64_t{1} << 24), op, ": length must be at most 2^24, but is ", length);

    const c10::cuda::CUDAGuard guard(joined.device());
    torch::Tensor out = torch::empty({batch, length, heads * kHeadDim}, joined.options());
    if (out.numel() == 0) return out;
    attention_launcher(out.data_ptr<float>(), joined.data_ptr<float>(), static_cast<int>(batch),
                       static_cast<int>(length), static_cast<int>(heads), c10::cuda::getCurrentCUDAStream().stream());
    return out;
}

void register_attention(pybind11::module& m) {
    m.def("attention", &attention, pybind11::arg("joined"), pybind11::arg("heads"),
          R"doc(Causal attention of heads of 96 features, from a joint projection, in TF32.

joined: (batch, length, 3 * heads * 96) float32, contiguous, CUDA: queries, keys and values side by side.
Returns (batch, length, heads * 96).

Raises RuntimeError for a wrong device, dtype, shape or layout.)doc");
}

REGISTER_BINDING(attention, register_attention);
