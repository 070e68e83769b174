// expect: cpp-compute:8
// torch::nn::functional.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

namespace F = torch::nn::functional;
torch::Tensor f(torch::Tensor a) {
    return F::relu(a);
}
