// expect: cpp-compute:7
// Tensors in a vector.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(std::vector<torch::Tensor> xs) {
    return xs[0].mm(xs[1]);
}
