// expect: cpp-compute:7
// at::matmul.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

at::Tensor f(const at::Tensor& a, const at::Tensor& b) {
    return at::matmul(a, b);
}
