// expect: internals:5 internals:9
// Python's dispatch key is excluded: no mode sees what follows.
#include <torch/extension.h>
torch::Tensor f(torch::Tensor x) {
  c10::impl::ExcludeDispatchKeyGuard guard(c10::DispatchKey::Python);
  return torch::empty_like(x);
}
torch::Tensor g(torch::Tensor x) {
  at::DisableRecordFunctionGuard guard;
  return torch::empty_like(x);
}
