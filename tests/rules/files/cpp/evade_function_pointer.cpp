// expect: cpp-compute:7
// A pointer to the function.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    auto op = &at::mm;
    return op(a, b);
}
