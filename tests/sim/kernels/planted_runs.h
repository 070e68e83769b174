// How tests run a kernel with a planted bug, or its clean twin, by the address of its launcher. Included once in each
// file.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

// Memory with exact bounds, and a call whose exceptions end here.
extern "C" void* sim_test_allocate(size_t bytes) {
    void* p = nullptr;
    cudaMalloc(&p, bytes);
    return p;
}
extern "C" int sim_test_call(int (*run)(const float*, float*, int), const float* in, float* out, int n) {
    cudaGetLastError();  // a fault of the run before must not count for this one
    try {
        return run(in, out, n);
    } catch (...) {
        return -1;
    }
}
// The whole of one run, for a device: copies in, launch, wait.
extern "C" int sim_test_run(int (*run)(const float*, float*, int), const float* host, int n) {
    float *in = nullptr, *out = nullptr;
    cudaMalloc(reinterpret_cast<void**>(&in), n * sizeof(float));
    cudaMalloc(reinterpret_cast<void**>(&out), n * sizeof(float));
    cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(out, 0, n * sizeof(float));
    const int launched = run(in, out, n);
    const int finished = static_cast<int>(cudaDeviceSynchronize());
    return launched ? launched : finished;
}
