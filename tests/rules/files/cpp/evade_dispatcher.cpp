// expect: cpp-hidden:7
// The operator is looked up by name.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

torch::Tensor f(torch::Tensor a, torch::Tensor b) {
    static auto op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mm", "");
    return op.typed<torch::Tensor(const torch::Tensor&, const torch::Tensor&)>().call(a, b);
}
