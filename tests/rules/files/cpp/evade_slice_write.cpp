// expect: cpp-compute:7
// A part of a tensor is assigned.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    a[0] = b;
    return a;
}
