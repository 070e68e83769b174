// Python binding of faulty.cu.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "../binding_registry.h"

extern "C" void faulty_launcher(float* y, float* x, int64_t n, int fault, cudaStream_t stream);
extern "C" void copy_launcher(uint8_t* y, const uint8_t* x, int64_t n, int truncated, cudaStream_t stream);

// x: float32, contiguous unless the fault is to read it so unasked (14). Returns 2 x in new memory, or what `fault`
// makes of it.
torch::Tensor faulty(const torch::Tensor& x, int64_t fault) {
    TORCH_CHECK(fault == 14 || x.is_contiguous(), "faulty: x must be contiguous");
    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty(x.sizes(), x.options());
    faulty_launcher(y.data_ptr<float>(), x.data_ptr<float>(), x.numel(), static_cast<int>(fault),
                    c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

// x: uint8, contiguous. Returns a copy.
torch::Tensor copy_bytes(const torch::Tensor& x, bool truncated) {
    TORCH_CHECK(x.is_contiguous(), "copy_bytes: x must be contiguous");
    const c10::cuda::CUDAGuard guard(x.device());
    torch::Tensor y = torch::empty_like(x);
    copy_launcher(y.data_ptr<uint8_t>(), x.data_ptr<uint8_t>(), x.numel(), truncated ? 1 : 0,
                  c10::cuda::getCurrentCUDAStream().stream());
    return y;
}

void register_faulty(pybind11::module& m) {
    m.def("faulty", &faulty, pybind11::arg("x"), pybind11::arg("fault"));
    m.def("copy_bytes", &copy_bytes, pybind11::arg("x"), pybind11::arg("truncated"));
}

REGISTER_BINDING(faulty, register_faulty);
