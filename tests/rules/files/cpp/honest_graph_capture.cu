// expect: nothing
// A stream made only to capture a graph on, which is launched where the caller says.
#include <cuda_runtime.h>
__global__ void k(float* x) { x[0] = 1; }
extern "C" void k_launcher(float* x, cudaStream_t stream) {
    static cudaGraphExec_t exec = nullptr;
    if (!exec) {
        cudaStream_t capture;
        cudaStreamCreateWithFlags(&capture, cudaStreamNonBlocking);
        cudaGraph_t graph;
        cudaStreamBeginCapture(capture, cudaStreamCaptureModeThreadLocal);
        k<<<1, 32, 0, capture>>>(x);
        cudaStreamEndCapture(capture, &graph);
        cudaGraphInstantiate(&exec, graph, 0);
    }
    cudaGraphLaunch(exec, stream);
}
