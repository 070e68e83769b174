// expect: cpp-compute:6
// The method is called in a macro.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#define PRODUCT(x, y) (x).matmul(y)
torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    return PRODUCT(a, b);
}
