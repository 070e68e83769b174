// expect: cpp-compute:8
// A tensor method.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    auto c = torch::empty_like(a);
    return a.view({-1, 8}).softmax(-1);
}
