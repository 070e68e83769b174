// Python binding of patch_embed.cpp.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" int64_t patch_embed_workspace_bytes(const float* x, const float* weight, const float* bias, int64_t batch,
                                               int64_t channels, int64_t height, int64_t width, int64_t patch,
                                               int64_t embed, int config);
extern "C" void patch_embed_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t batch,
                                     int64_t channels, int64_t height, int64_t width, int64_t patch, int64_t embed,
                                     int config, void* workspace, cudaStream_t stream);

at::Tensor patch_embed(const at::Tensor& images, const at::Tensor& weight, const at::Tensor& bias, int64_t config) {
    constexpr const char* op = "patch_embed";
    kernels::check_tensor(images, op, "images", at::kFloat);
    TORCH_CHECK(images.dim() == 4, op, ": images must be (batch, channels, height, width), but have shape ",
                images.sizes());
    TORCH_CHECK(weight.defined() && weight.dim() == 4, op, ": weight must be (embed, channels, patch, patch)");
    const int64_t batch = images.size(0), channels = images.size(1), height = images.size(2), width = images.size(3);
    const int64_t embed = weight.size(0), patch = weight.size(3);
    TORCH_CHECK(channels > 0 && patch > 0, op, ": channels and patch must be positive, but weight has shape ",
                weight.sizes());
    kernels::check_parameter(weight, op, "weight", at::kFloat, images, "images", {embed, channels, patch, patch},
                             "(embed, channels, patch, patch)");
    kernels::check_parameter(bias, op, "bias", at::kFloat, images, "images", {embed}, "(embed)");
    TORCH_CHECK(height >= patch && width >= patch, op, ": images of ", height, " x ", width,
                " are smaller than one patch of ", patch, " x ", patch);
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(images.device());
    const int64_t tokens = (height / patch) * (width / patch);
    at::Tensor y = kernels::empty({batch, tokens, embed}, images.options());
    if (y.numel() == 0) return y;
    const int64_t workspace_bytes =
        patch_embed_workspace_bytes(images.data_ptr<float>(), weight.data_ptr<float>(), bias.data_ptr<float>(), batch,
                                    channels, height, width, patch, embed, checked_config);
    const at::Tensor workspace = kernels::allocate_workspace(workspace_bytes, images);
    patch_embed_launcher(y.data_ptr<float>(), images.data_ptr<float>(), weight.data_ptr<float>(),
                         bias.data_ptr<float>(), batch, channels, height, width, patch, embed, checked_config,
                         workspace.data_ptr(), c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_patch_embed(pybind11::module& m) {
    m.def("patch_embed", &patch_embed, pybind11::arg("images"), pybind11::arg("weight"), pybind11::arg("bias"),
          pybind11::arg("config") = 0,
          R"doc(Patch embedding: conv2d(images, weight, bias, stride=patch), one row per patch.

images: (batch, channels, height, width) float32, contiguous, CUDA. weight: (embed, channels, patch, patch).
bias: (embed). Returns (batch, (height // patch) * (width // patch), embed): the convolution's output, flattened over
space and channels last. Forward only.

config: precision, convolution and choice of cuDNN engine
    0  TF32, 1 x 1 convolution over patches, fastest engine (timed at the first call of a shape)
    1  TF32, 1 x 1 convolution over patches, the heuristic's first engine
    2  TF32, convolution of the image as it is, fastest engine
    3  strict fp32, 1 x 1 convolution over patches, fastest engine

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(patch_embed, register_patch_embed);
