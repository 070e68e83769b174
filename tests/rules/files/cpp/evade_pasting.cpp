// expect: cpp-hidden:6 cpp-hidden:10
// The name is pasted together.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#define CALL(a, b) at::a##b
torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    return CALL(mat, mul)(a, b);
}
#define OP(name) torch::name
