// expect: cpp-compute:7
// torch converts the tensor.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a) {
    return a.to(torch::kHalf);
}
