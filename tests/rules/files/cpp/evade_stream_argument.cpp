// expect: stream:8 stream:10
// The launcher is given no stream, or the default one.
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

extern "C" void k_launcher(float* x, cudaStream_t stream);
torch::Tensor f(torch::Tensor a) {
    k_launcher(a.data_ptr<float>(), 0);
    cudaStream_t stream = nullptr;
    k_launcher(a.data_ptr<float>(), stream);
    return a;
}
