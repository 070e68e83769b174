// expect: cpp-compute:8
// An opened namespace.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

using namespace torch;
Tensor f(Tensor a, Tensor b) {
    return matmul(a, b);
}
