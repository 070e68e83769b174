// expect: cpp-compute:6
// One name taken out of its namespace.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

using at::matmul;
at::Tensor f(at::Tensor a, at::Tensor b) {
    return matmul(a, b);
}
