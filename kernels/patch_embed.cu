// The list of patches that patch_embed.cpp convolves, fp32:
//
//     patches[n, (h, w), (c, i, j)] = x[n, c, h P + i, w P + j]        P = patch size
//
// x: (N, C, H, W), row-major; rows and columns left over when P does not divide H or W are not used.
//
// Bound: memory, each element read and written once: 77 MB for 64 x 3 x 224 x 224, 18 us at 4.3 TB/s. Algorithm:
// threads follow x, 16 bytes an access, several loads in flight before the first store.
#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "common/check.h"
#include "common/vector.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kVectorsPerThread = 4;  // independent loads in flight before the first store

struct Shape {
    int64_t batch, channels, height, width, patch;
    int64_t rows() const { return height / patch; }    // of patches
    int64_t columns() const { return width / patch; }  // of patches
    int64_t floats() const { return batch * rows() * columns() * channels * patch * patch; }
};

// Copies vectors of Width floats from x to patches. Vectors are numbered in the order (n, c, h, i, w, j) in which x
// lies in memory, so reads are one stream; writes come in runs of P floats, 64 bytes for P = 16, whole sectors. Index
// is 32 bits wide where that suffices: 64-bit division costs several times as much. Patch = 0 reads the patch size from
// the arguments.
template <int Width, int Patch, typename Index>
__global__ void __launch_bounds__(kThreads)
    patches_kernel(float* __restrict__ patches, const float* __restrict__ x, Index vectors, Index channels,
                   Index height, Index width, Index runtime_patch, Index rows, Index columns) {
    const Index patch = Patch == 0 ? runtime_patch : Index{Patch};
    const Index per_run = patch / Width;
    kernels::Vector<float, Width> values[kVectorsPerThread];
    Index targets[kVectorsPerThread];
    const Index first = Index{blockIdx.x} * (kThreads * kVectorsPerThread) + threadIdx.x;
#pragma unroll
    for (int v = 0; v < kVectorsPerThread; ++v) {
        const Index index = first + Index{kThreads} * v;
        if (index >= vectors) break;
        Index rest = index;
        const Index j = rest % per_run * Width;
        rest /= per_run;
        const Index w = rest % columns;
        rest /= columns;
        const Index i = rest % patch;
        rest /= patch;
        const Index h = rest % rows;
        rest /= rows;  // n * channels + c
        const Index c = rest % channels;
        const Index n = rest / channels;
        const Index source = (rest * height + h * patch + i) * width + w * patch + j;
        targets[v] = ((((n * rows + h) * columns + w) * channels + c) * patch + i) * patch + j;
        values[v] = kernels::load_streaming<Width>(x + source);
    }
#pragma unroll
    for (int v = 0; v < kVectorsPerThread; ++v) {
        if (first + Index{kThreads} * v >= vectors) break;
        kernels::store<Width>(patches + targets[v], values[v]);
    }
}

template <int Width, int Patch, typename Index>
void launch_patches(float* patches, const float* x, const Shape& shape, cudaStream_t stream) {
    const int64_t vectors = shape.floats() / Width;
    constexpr int64_t kPerBlock = kThreads * kVectorsPerThread;
    const int64_t grid = (vectors + kPerBlock - 1) / kPerBlock;
    if (grid > std::numeric_limits<int>::max()) kernels::throw_error("patch_embed: the image batch is too large");
    patches_kernel<Width, Patch, Index><<<static_cast<unsigned>(grid), kThreads, 0, stream>>>(
        patches, x, static_cast<Index>(vectors), static_cast<Index>(shape.channels), static_cast<Index>(shape.height),
        static_cast<Index>(shape.width), static_cast<Index>(shape.patch), static_cast<Index>(shape.rows()),
        static_cast<Index>(shape.columns()));
    CUDA_CHECK_LAUNCH();
}

void make_patches(float* patches, const float* x, const Shape& shape, cudaStream_t stream) {
    const bool vectorized =
        shape.patch % 4 == 0 && shape.width % 4 == 0 && kernels::is_aligned(x, kernels::kVectorBytes);
    const int64_t floats = shape.batch * shape.channels * shape.height * shape.width;
    if (floats > std::numeric_limits<int>::max()) {
        if (vectorized) return launch_patches<4, 0, uint64_t>(patches, x, shape, stream);
        return launch_patches<1, 0, uint64_t>(patches, x, shape, stream);
    }
    if (vectorized && shape.patch == 16) return launch_patches<4, 16, uint32_t>(patches, x, shape, stream);
    if (vectorized) return launch_patches<4, 0, uint32_t>(patches, x, shape, stream);
    return launch_patches<1, 0, uint32_t>(patches, x, shape, stream);
}

}  // namespace

// patches: (batch, height / patch * (width / patch), channels * patch^2), 16-byte aligned. x: (batch, channels, height,
// width). Device pointers, contiguous, every size at least 1. Throws kernels::Error.
extern "C" void patches_launcher(float* patches, const float* x, int64_t batch, int64_t channels, int64_t height,
                                 int64_t width, int64_t patch, cudaStream_t stream) {
    make_patches(patches, x, Shape{batch, channels, height, width, patch}, stream);
}
