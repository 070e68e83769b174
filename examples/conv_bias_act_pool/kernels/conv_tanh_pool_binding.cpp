// Python binding of conv_tanh_pool.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"
#include "common/tensor_checks.h"

extern "C" int64_t conv_tanh_pool_workspace_bytes(int64_t images, int64_t channels, int64_t height, int64_t width,
                                                  int64_t filters, int64_t window_height, int64_t window_width,
                                                  int config);
extern "C" void conv_tanh_pool_launcher(float* y, const float* x, const float* w, const float* conv_bias,
                                        const float* bias, float scale, int64_t images, int64_t channels,
                                        int64_t height, int64_t width, int64_t filters, int64_t window_height,
                                        int64_t window_width, int config, void* workspace, cudaStream_t stream);

torch::Tensor conv_tanh_pool(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& conv_bias,
                             const torch::Tensor& bias, double scale, int64_t config) {
    constexpr const char* op = "conv_tanh_pool";
    constexpr int64_t kPool = 4;
    kernels::check_tensor(x, op, "x", torch::kFloat32);            // (n, channels, height, width)
    kernels::check_tensor(weight, op, "weight", torch::kFloat32);  // (filters, channels, window_height, window_width)
    TORCH_CHECK(x.dim() == 4, op, ": x must be (n, channels, height, width), but has shape ", x.sizes());
    TORCH_CHECK(weight.dim() == 4 && weight.size(1) == x.size(1), op,
                ": weight must be (filters, channels, window_height, window_width), but has shape ", weight.sizes(),
                " for x of shape ", x.sizes());
    kernels::check_same_device(weight, op, "weight", x, "x");
    const int64_t filters = weight.size(0);
    kernels::check_parameter(conv_bias, op, "conv_bias", torch::kFloat32, x, "x", {filters}, "(filters)");
    kernels::check_parameter(bias, op, "bias", torch::kFloat32, x, "x", {filters, 1, 1}, "(filters, 1, 1)");
    TORCH_CHECK(x.size(1) > 0 && x.size(1) % 8 == 0, op, ": channels must be a multiple of 8, but are ", x.size(1));
    TORCH_CHECK(filters > 0 && filters % 8 == 0 && 256 % (filters / 4) == 0, op,
                ": filters must be 8 times a power of two, at most 1024, but are ", filters);
    const int64_t rows = (x.size(2) - weight.size(2) + 1) / kPool;
    const int64_t columns = (x.size(3) - weight.size(3) + 1) / kPool;
    TORCH_CHECK(x.size(2) >= weight.size(2) && x.size(3) >= weight.size(3) && rows > 0 && columns > 0, op,
                ": the convolution of x ", x.sizes(), " must be at least ", kPool, " x ", kPool);
    TORCH_CHECK(filters * (columns + 1) * 4 <= 200000, op, ": filters * (width / 4 + 1) must be at most 50000");
    const int checked_config = kernels::checked_config(config, op);

    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty({x.size(0), filters, rows, columns}, x.options());
    if (y.numel() == 0) return y;
    const torch::Tensor workspace =
        kernels::allocate_workspace(conv_tanh_pool_workspace_bytes(x.size(0), x.size(1), x.size(2), x.size(3), filters,
                                                                   weight.size(2), weight.size(3), checked_config),
                                    x);
    conv_tanh_pool_launcher(y.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(),
                            conv_bias.data_ptr<float>(), bias.data_ptr<float>(), static_cast<float>(scale), x.size(0),
                            x.size(1), x.size(2), x.size(3), filters, weight.size(2), weight.size(3), checked_config,
                            workspace.data_ptr(), c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_conv_tanh_pool(pybind11::module& m) {
    m.def("conv_tanh_pool", &conv_tanh_pool, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("conv_bias"),
          pybind11::arg("bias"), pybind11::arg("scale"), pybind11::arg("config") = 0,
          R"doc(max over 4 x 4 windows of scale * tanh(conv2d(x, weight) + conv_bias) + bias; stride 1, no padding.

x: (n, channels, height, width) float32, contiguous, CUDA, channels a multiple of 8.
weight: (filters, channels, window_height, window_width). conv_bias: (filters). bias: (filters, 1, 1).
Returns (n, filters, height', width').

config: precision of the convolution, storage of its result, images worked on at a time
    0  TF32, fp32, all
    1  fp16 operands, fp16, all
    2  TF32, fp32, two
    3  fp16 operands, fp16, four
    4  TF32, in one kernel without memory between; 8 channels and 3 x 3 windows only

Raises RuntimeError for a wrong device, dtype, shape, layout or config.)doc");
}

REGISTER_BINDING(conv_tanh_pool, register_conv_tanh_pool);
