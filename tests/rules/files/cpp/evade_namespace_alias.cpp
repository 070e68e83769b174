// expect: cpp-compute:8
// A namespace under another name.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

namespace t = torch;
t::Tensor f(t::Tensor a, t::Tensor b) {
    return t::addmm(a, a, b);
}
