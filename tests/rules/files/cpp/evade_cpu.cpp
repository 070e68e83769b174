// expect: cpp-cpu:7 cpp-cpu:8
// The data go to the CPU.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a) {
    auto b = a.cpu();
    return a.to(torch::kCPU);
}
