// expect: cpp-compute:7 cpp-compute:10
// The namespace and the function are macros.
#include <torch/extension.h>
#define AT at
#define R relu
torch::Tensor f(torch::Tensor x) {
  return AT::R(x);
}
torch::Tensor g(torch::Tensor x) {
  return x.R();
}
