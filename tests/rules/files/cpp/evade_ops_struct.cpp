// expect: cpp-compute:7
// The operator's struct.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

at::Tensor f(const at::Tensor& a, const at::Tensor& b) {
    return at::_ops::mm::call(a, b);
}
