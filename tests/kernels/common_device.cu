// Device tests of kernels/common: each check compares with the same thing done plainly on the host. Prints one line per
// failure, then "ok" or "failed"; run by test_common_headers.py.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/autotune.h"
#include "common/check.h"
#include "common/numeric.cuh"
#include "common/reduce.cuh"
#include "common/vector.cuh"

namespace {

using namespace kernels;

int failures = 0;

void expect(bool condition, const std::string& what) {
    if (condition) return;
    ++failures;
    std::printf("wrong: %s\n", what.c_str());
}

// An array in pinned host memory, which the device reads and writes in place: small data, no copies to write.
template <typename T>
struct Shared {
    explicit Shared(size_t size) { CUDA_CHECK(cudaMallocHost(&data, size * sizeof(T))); }
    ~Shared() { cudaFreeHost(data); }
    T& operator[](size_t i) { return data[i]; }
    T* data = nullptr;
};

void finish() {
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaDeviceSynchronize());
}

// --- reduce.cuh

template <int Width>
__global__ void warp_sums(const float* in, float* out) {
    out[threadIdx.x] = warp_reduce<Width>(in[threadIdx.x], Sum());
}

template <int Width>
void test_warp(Shared<float>& in, Shared<float>& out) {
    warp_sums<Width><<<1, kWarpSize>>>(in.data, out.data);
    finish();
    for (int lane = 0; lane < kWarpSize; ++lane) {
        float sum = 0;
        for (int i = lane / Width * Width; i < lane / Width * Width + Width; ++i) sum += in[i];
        expect(out[lane] == sum, "warp_reduce<" + std::to_string(Width) + "> in lane " + std::to_string(lane));
    }
}

// Three reductions in a row over the same shared memory: a missing barrier between them would mix them up.
template <int Threads>
__global__ void block_results(const float* in, float* out) {
    __shared__ float partial[Threads / kWarpSize];
    const float value = in[threadIdx.x];
    out[threadIdx.x] = block_reduce<Threads>(value, Sum(), partial);
    out[Threads + threadIdx.x] = block_reduce<Threads>(value, Max(), partial);
    out[2 * Threads + threadIdx.x] = block_reduce<Threads>(value, Min(), partial);
}

template <int Threads>
void test_block(Shared<float>& in, Shared<float>& out) {
    block_results<Threads><<<1, Threads>>>(in.data, out.data);
    finish();
    float sum = 0, largest = in[0], smallest = in[0];
    for (int i = 0; i < Threads; ++i) {
        sum += in[i];
        largest = std::fmax(largest, in[i]);
        smallest = std::fmin(smallest, in[i]);
    }
    for (int i = 0; i < Threads; ++i) {
        const std::string where = " of " + std::to_string(Threads) + " threads, in thread " + std::to_string(i);
        expect(out[i] == sum, "block sum" + where);
        expect(out[Threads + i] == largest, "block max" + where);
        expect(out[2 * Threads + i] == smallest, "block min" + where);
    }
}

void test_reductions() {
    Shared<float> in(1024), out(3 * 1024);
    for (int i = 0; i < 1024; ++i) in[i] = static_cast<float>((i * 37) % 101 - 50);  // sums are exact in any order
    test_warp<1>(in, out);
    test_warp<2>(in, out);
    test_warp<8>(in, out);
    test_warp<32>(in, out);
    test_block<32>(in, out);
    test_block<64>(in, out);
    test_block<256>(in, out);
    test_block<1024>(in, out);

    in[300] = std::numeric_limits<float>::quiet_NaN();
    block_results<1024><<<1, 1024>>>(in.data, out.data);
    finish();
    for (int i = 0; i < 3 * 1024; ++i) expect(std::isnan(out[i]), "NaN survives sum, max and min");
}

// --- vector.cuh and numeric.cuh

template <typename T, int N>
__global__ void copy_vectors(const T* in, T* out, T* streamed) {
    const int at = N * static_cast<int>(threadIdx.x);
    store(out + at, load<N>(in + at));
    store_streaming(streamed + at, load_streaming<N>(in + at));
}

template <typename T, int N>
void test_copy(const char* name) {
    constexpr int kThreads = 48;
    Shared<T> in(kThreads * N), out(kThreads * N), streamed(kThreads * N);
    auto* bytes = reinterpret_cast<unsigned char*>(in.data);
    for (size_t i = 0; i < sizeof(T) * kThreads * N; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + 3);
    copy_vectors<T, N><<<1, kThreads>>>(in.data, out.data, streamed.data);
    finish();
    expect(std::memcmp(in.data, out.data, sizeof(T) * kThreads * N) == 0, std::string("plain copy of ") + name);
    expect(std::memcmp(in.data, streamed.data, sizeof(T) * kThreads * N) == 0,
           std::string("streaming copy of ") + name);
}

template <typename T>
__global__ void round_trip(const float* in, float* out) {
    store(out + 4 * threadIdx.x, to_float(from_float<T>(load<4>(in + 4 * threadIdx.x))));
}

template <typename T>
void test_round_trip(const char* name, float roundoff) {
    Shared<float> in(128), out(128);
    for (int i = 0; i < 128; ++i)
        in[i] = std::sin(static_cast<float>(i)) * std::pow(2.0f, static_cast<float>(i % 9 - 4));
    round_trip<T><<<1, 32>>>(in.data, out.data);
    finish();
    for (int i = 0; i < 128; ++i) {
        expect(std::fabs(out[i] - in[i]) <= roundoff * std::fabs(in[i]), std::string("float -> ") + name + " -> float");
    }
}

void test_vectors() {
    test_copy<float, 1>("float x 1");
    test_copy<float, 2>("float x 2");
    test_copy<float, 4>("float x 4");
    test_copy<__half, 1>("half x 1");
    test_copy<__half, 8>("half x 8");
    test_copy<__nv_bfloat16, 2>("bfloat16 x 2");
    test_copy<__nv_bfloat16, 8>("bfloat16 x 8");
    test_copy<double, 2>("double x 2");
    test_round_trip<float>("float", 0);
    test_round_trip<__half>("half", 1.0f / 2048);
    test_round_trip<__nv_bfloat16>("bfloat16", 1.0f / 256);
    alignas(16) const char buffer[32] = {};
    expect(is_aligned(buffer, 16) && !is_aligned(buffer + 4, 16) && is_aligned(buffer + 4, 4), "is_aligned");
}

// --- autotune.h and check.h

__global__ void spin(long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

void test_autotune() {
    const long long cycles[] = {4000000, 2000000, 200000, 3000000, 1000000, 2500000};
    const auto run = [&](int i) {
        if (i == 3) return false;  // one candidate refuses
        spin<<<1, 1>>>(cycles[i]);
        return true;
    };
    expect(fastest(6, nullptr, run) == 2, "fastest of six");
    expect(fastest(3, nullptr, [](int) { return false; }) == -1, "no candidate runs");
    expect(fastest(0, nullptr, run) == -1, "no candidate at all");
    expect(!is_capturing(nullptr), "not capturing");
}

void test_errors() {
    try {
        CUDA_CHECK(cudaErrorInvalidValue);
        expect(false, "CUDA_CHECK throws");
    } catch (const kernels::Error& error) {
        const std::string text = error.what();
        expect(text.find("cudaErrorInvalidValue") != std::string::npos &&
                   text.find("common_device.cu:") != std::string::npos,
               "CUDA_CHECK names the error and the place: " + text);
    }
    try {
        spin<<<1, 5000>>>(1);  // more threads than a block may have
        CUDA_CHECK_LAUNCH();
        expect(false, "CUDA_CHECK_LAUNCH throws");
    } catch (const kernels::Error&) {
    }
    expect(cudaGetLastError() == cudaSuccess, "a refused launch leaves no error behind");
}

}  // namespace

int main() {
    try {
        test_reductions();
        test_vectors();
        test_autotune();
        test_errors();
    } catch (const std::exception& error) {
        expect(false, error.what());
    }
    std::puts(failures == 0 ? "ok" : "failed");
    return failures == 0 ? 0 : 1;
}
