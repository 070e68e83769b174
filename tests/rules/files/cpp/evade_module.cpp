// expect: cpp-compute:7
// A module of torch's C++ interface.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a) {
    torch::nn::Linear layer(8, 8);
    return layer->forward(a);
}
