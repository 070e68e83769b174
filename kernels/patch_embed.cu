// Patch embedding of a vision transformer: a convolution whose window equals its stride, from an image to tokens, fp32:
//
//     y[n, (h, w), k] = bias[k] + sum_{c, i, j} x[n, c, h P + i, w P + j] * weight[k, c, i, j]        P = patch size
//
// x: (N, C, H, W), weight: (K, C, P, P), y: (N, (H / P) (W / P), K), row-major; as in any convolution without padding
// the rows and columns left over when P does not divide H or W are not used.
//
// Bound: 2 * 12544 * 768 * 768 = 14.8 GFLOP, 37 us at 400 TFLOP/s in TF32; x and y, 38.5 MB each, take 18 us at 4.3
// TB/s.
//
// Algorithm. Windows do not overlap, so the convolution is one matrix product over the list of patches, and y in
// channels-last order is the list of tokens: no transpose follows. cuDNN's fast channels-last kernels want many
// channels, though, and the image has three: given the image as it is, every engine it offers first rewrites the whole
// of it. So the rewriting is done here, into exactly the operand of the product,
//
//     patches[n, (h, w), (c, i, j)] = x[n, c, h P + i, w P + j]
//
// by one raw CUDA pass (each input byte read once, 16 at a time; 20 us), and cuDNN is given a 1 x 1 convolution of an
// H/P x W/P image with C P^2 channels, which its best kernels run in place with the bias fused. The weight needs no
// repacking at all: (K, C, P, P) in row-major order is (K, C P^2).
//
//     config   precision   convolution                                    engine
//     0        TF32        1 x 1 over patches                             fastest of up to 24, timed once per shape
//     1        TF32        1 x 1 over patches                             the heuristic's first
//     2        TF32        P x P over the image (NCHW in, NHWC out)       fastest of up to 24
//     3        fp32        1 x 1 over patches                             fastest of up to 24
//
// Config 2 falls back to patches where the image is not aligned to 16 bytes.
#include <cuda_runtime.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "common/check.h"
#include "common/cudnn_conv.h"
#include "common/vector.cuh"

namespace {

constexpr int kThreads = 256;
constexpr int kVectorsPerThread = 4;  // independent loads in flight before the first store
constexpr int kAlignment = 16;        // what cuDNN is told of every pointer

struct Shape {
    int64_t batch, channels, height, width, patch, embed;
    int64_t rows() const { return height / patch; }    // of patches
    int64_t columns() const { return width / patch; }  // of patches
    int64_t patch_size() const { return channels * patch * patch; }
    int64_t patches() const { return batch * rows() * columns(); }
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
    const int64_t vectors = shape.patches() * shape.patch_size() / Width;
    constexpr int64_t kPerBlock = kThreads * kVectorsPerThread;
    const int64_t grid = (vectors + kPerBlock - 1) / kPerBlock;
    if (grid > std::numeric_limits<int>::max()) throw std::runtime_error("patch_embed: the image batch is too large");
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

// Which convolution a config means.
struct Choice {
    bool over_patches;
    kernels::Convolution problem;
    kernels::ConvolutionSearch search;
};

Choice choose(const Shape& shape, int config, bool image_aligned) {
    if (config < 0 || config > 3) {
        throw std::runtime_error("patch_embed: config must be 0 to 3, got " + std::to_string(config));
    }
    Choice choice;
    choice.over_patches = config != 2 || !image_aligned;
    choice.search = config == 1 ? kernels::ConvolutionSearch::kHeuristic : kernels::ConvolutionSearch::kTimed;
    const int64_t n = shape.batch, c = shape.channels, p = shape.patch, k = shape.embed;
    kernels::Convolution& problem = choice.problem;
    if (choice.over_patches) {
        problem.x = kernels::channels_last({n, shape.patch_size(), shape.rows(), shape.columns()});
        problem.w = kernels::channels_last({k, shape.patch_size(), 1, 1});
        problem.stride = {1, 1};
    } else {
        problem.x = kernels::channels_first({n, c, shape.height, shape.width});
        problem.w = kernels::channels_first({k, c, p, p});
        problem.stride = {p, p};
    }
    problem.y = kernels::channels_last({n, k, shape.rows(), shape.columns()});
    problem.padding = {0, 0};
    problem.type = CUDNN_DATA_FLOAT;
    problem.alignment = kAlignment;
    problem.allow_tf32 = config != 3;
    return choice;
}

// What of the workspace, in bytes, holds a copy of an operand; 0 where the operand is used as it lies. The rest is
// cuDNN's.
struct Copies {
    int64_t patches, weight, bias;
    int64_t total() const { return patches + weight + bias; }
};

// cuDNN's kernels want every operand aligned: a weight or bias that is not, a view into a larger tensor, is copied
// first.
Copies needed_copies(const Shape& shape, const Choice& choice, const float* weight, const float* bias) {
    const auto bytes = [](int64_t floats) {
        return (floats * static_cast<int64_t>(sizeof(float)) + 255) / 256 * 256;  // what follows is aligned too
    };
    return {choice.over_patches ? bytes(shape.patches() * shape.patch_size()) : 0,
            kernels::is_aligned(weight, kAlignment) ? 0 : bytes(shape.embed * shape.patch_size()),
            kernels::is_aligned(bias, kAlignment) ? 0 : bytes(shape.embed)};
}

void copy_floats(void* target, const float* source, int64_t floats, cudaStream_t stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(target, source, static_cast<size_t>(floats) * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

// Bytes of scratch memory that the next patch_embed_launcher with these arguments needs. Throws std::runtime_error.
extern "C" int64_t patch_embed_workspace_bytes(const float* x, const float* weight, const float* bias, int64_t batch,
                                               int64_t channels, int64_t height, int64_t width, int64_t patch,
                                               int64_t embed, int config) {
    const Shape shape{batch, channels, height, width, patch, embed};
    const Choice choice = choose(shape, config, kernels::is_aligned(x, kAlignment));
    const int64_t bytes = kernels::convolution_workspace_bytes(choice.problem, choice.search);
    if (bytes < 0) {
        throw std::runtime_error("patch_embed: cuDNN has no engine for batch = " + std::to_string(batch) +
                                 ", channels = " + std::to_string(channels) + ", height = " + std::to_string(height) +
                                 ", width = " + std::to_string(width) + ", patch = " + std::to_string(patch) +
                                 ", embed = " + std::to_string(embed) + ", config = " + std::to_string(config));
    }
    return needed_copies(shape, choice, weight, bias).total() + bytes;
}

// Device pointers; y and workspace aligned to 16 bytes and overlapping no operand; every size at least 1, patch at most
// height and width. Throws std::runtime_error.
extern "C" void patch_embed_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t batch,
                                     int64_t channels, int64_t height, int64_t width, int64_t patch, int64_t embed,
                                     int config, void* workspace, cudaStream_t stream) {
    const Shape shape{batch, channels, height, width, patch, embed};
    const Choice choice = choose(shape, config, kernels::is_aligned(x, kAlignment));
    const Copies copies = needed_copies(shape, choice, weight, bias);
    char* const patches_copy = static_cast<char*>(workspace);
    char* const weight_copy = patches_copy + copies.patches;
    char* const bias_copy = weight_copy + copies.weight;

    kernels::ConvolutionOperands operands{x, weight, bias, y, bias_copy + copies.bias};
    if (copies.patches > 0) {
        make_patches(reinterpret_cast<float*>(patches_copy), x, shape, stream);
        operands.x = patches_copy;
    }
    if (copies.weight > 0) {
        copy_floats(weight_copy, weight, embed * shape.patch_size(), stream);
        operands.w = weight_copy;
    }
    if (copies.bias > 0) {
        copy_floats(bias_copy, bias, embed, stream);
        operands.bias = bias_copy;
    }
    if (!kernels::run_convolution(choice.problem, operands, choice.search, stream)) {
        throw std::runtime_error("patch_embed: every cuDNN engine refused to run");
    }
}
