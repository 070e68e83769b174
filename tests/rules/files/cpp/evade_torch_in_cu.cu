// expect: cpp-compute:5 torch-in-cu:7
// A .cu file with torch.
#include <cuda_runtime.h>
void f() {
    auto y = at::zeros({3}).sum();
}
#include <torch/types.h>
