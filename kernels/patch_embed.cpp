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
// by one raw CUDA pass, patch_embed.cu (each input byte read once, 16 at a time; 20 us), and cuDNN is given a 1 x 1
// convolution of an H/P x W/P image with C P^2 channels, which its best kernels run in place with the bias fused. The
// weight needs no repacking at all: (K, C, P, P) in row-major order is (K, C P^2).
//
//     config   precision   convolution                                    engine
//     0        TF32        1 x 1 over patches                             fastest of up to 24, timed once per shape
//     1        TF32        1 x 1 over patches                             the heuristic's first
//     2        TF32        P x P over the image (NCHW in, NHWC out)       fastest of up to 24
//     3        fp32        1 x 1 over patches                             fastest of up to 24
//
// Config 2 falls back to patches where the image is not aligned to 16 bytes.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "common/check.h"
#include "common/cudnn_conv.h"

// In patch_embed.cu.
extern "C" void patches_launcher(float* patches, const float* x, int64_t batch, int64_t channels, int64_t height,
                                 int64_t width, int64_t patch, cudaStream_t stream);

namespace {

constexpr int kAlignment = 16;  // what cuDNN is told of every pointer

bool is_aligned(const void* pointer) {
    return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
}

struct Shape {
    int64_t batch, channels, height, width, patch, embed;
    int64_t rows() const { return height / patch; }    // of patches
    int64_t columns() const { return width / patch; }  // of patches
    int64_t patch_size() const { return channels * patch * patch; }
    int64_t patches() const { return batch * rows() * columns(); }
};

// Which convolution a config means.
struct Choice {
    bool over_patches;
    kernels::Convolution problem;
    kernels::ConvolutionSearch search;
};

Choice choose(const Shape& shape, int config, bool image_aligned) {
    if (config < 0 || config > 3) {
        kernels::throw_error("patch_embed: config must be 0 to 3, got %d", config);
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
            is_aligned(weight) ? 0 : bytes(shape.embed * shape.patch_size()),
            is_aligned(bias) ? 0 : bytes(shape.embed)};
}

void copy_floats(void* target, const float* source, int64_t floats, cudaStream_t stream) {
    CUDA_CHECK(
        cudaMemcpyAsync(target, source, static_cast<size_t>(floats) * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

}  // namespace

// Bytes of scratch memory that the next patch_embed_launcher with these arguments needs. Throws kernels::Error.
extern "C" int64_t patch_embed_workspace_bytes(const float* x, const float* weight, const float* bias, int64_t batch,
                                               int64_t channels, int64_t height, int64_t width, int64_t patch,
                                               int64_t embed, int config) {
    const Shape shape{batch, channels, height, width, patch, embed};
    const Choice choice = choose(shape, config, is_aligned(x));
    const int64_t bytes = kernels::convolution_workspace_bytes(choice.problem, choice.search);
    if (bytes < 0) {
        kernels::throw_error(
            "patch_embed: cuDNN has no engine for batch = %ld, channels = %ld, height = %ld, width = %ld, patch = %ld, "
            "embed = %ld, config = %d",
            batch, channels, height, width, patch, embed, config);
    }
    return needed_copies(shape, choice, weight, bias).total() + bytes;
}

// Device pointers; y and workspace aligned to 16 bytes and overlapping no operand; every size at least 1, patch at most
// height and width. Throws kernels::Error.
extern "C" void patch_embed_launcher(float* y, const float* x, const float* weight, const float* bias, int64_t batch,
                                     int64_t channels, int64_t height, int64_t width, int64_t patch, int64_t embed,
                                     int config, void* workspace, cudaStream_t stream) {
    const Shape shape{batch, channels, height, width, patch, embed};
    const Choice choice = choose(shape, config, is_aligned(x));
    const Copies copies = needed_copies(shape, choice, weight, bias);
    char* const patches_copy = static_cast<char*>(workspace);
    char* const weight_copy = patches_copy + copies.patches;
    char* const bias_copy = weight_copy + copies.weight;

    kernels::ConvolutionOperands operands{x, weight, bias, y, bias_copy + copies.bias};
    if (copies.patches > 0) {
        patches_launcher(reinterpret_cast<float*>(patches_copy), x, batch, channels, height, width, patch, stream);
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
        kernels::throw_error("patch_embed: every cuDNN engine refused to run");
    }
}
