// expect: cpp-compute:7
// torch::matmul.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    return torch::matmul(a, b);
}
