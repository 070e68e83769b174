// expect: cpp-compute:7 cpp-compute:8
// Operators on tensors.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    auto y = a * 2;
    b += a;
    return y;
}
