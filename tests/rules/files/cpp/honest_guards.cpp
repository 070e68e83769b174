// expect: nothing
// Guards for autograd and autocast, macros for numbers and types, a constant of the module.
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#define BLOCK THREADS
#define THREADS 256
#define CHECK(x) TORCH_CHECK(x.is_cuda(), #x " must be on the GPU")
namespace py = pybind11;
torch::Tensor f(torch::Tensor x) {
  c10::cuda::CUDAGuard guard(x.device());
  c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::Autocast);
  at::NoGradGuard no_grad;
  py::gil_scoped_release release;
  CHECK(x);
  auto y = torch::empty({x.size(0), (x.size(1) + BLOCK - 1) / BLOCK}, x.options());
  return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("f", &f);
  m.attr("block") = py::int_(BLOCK);
}
