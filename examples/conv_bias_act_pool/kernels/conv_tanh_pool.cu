// y = max over 4 x 4 windows of  scale * tanh(conv(x, w) + conv_bias) + bias,   fp32 in and out;
// x (n, c, h, w), w (k, c, r, s), stride 1, no padding; y (n, k, oh, ow) in channels-first order.
//
// What bounds it. At 128 x 8 x 256 x 256 with 64 filters of 3 x 3: 76 GFLOP, 0.2 ms on the tensor cores in TF32; x and
// y are 0.4 GB, 0.1 ms. But the convolution's result, 2.1 GB, must pass through memory when the convolution is the
// library's: written and read once that is 1.0 ms, and this is the bound of the approach. Eager makes five passes over
// it; torch.compile convolves in channels-first order and makes one more.
//
// The algorithm.
//   1. x to channels-last, once: 0.13 ms. With 8 channels a pixel is 32 bytes, and cuDNN's tensor-core kernels apply.
//   2. cuDNN convolves, with the bias added in its epilogue; the engine is chosen by timing
//   (kernels/common/cudnn_conv.h).
//   3. One pass pools, applies the rest, and returns to channels-first order. tanh rises, and so does scale * u + bias
//   for
//      scale >= 0: max(f(u)) = f(max(u)), so the maximum is taken first and f computed for one element in 16. (For
//      scale < 0 it falls: the minimum instead.) Every element is read once, 16 loads of 16 bytes in flight per thread.
//
// Half the bytes. Stored as fp16, which has TF32's 10 bits of mantissa, the result between 2 and 3 is 1.05 GB (config
// 1). The price is range: a convolution beyond 65504 becomes infinite, and small ones lose bits below 6e-5; after tanh
// neither shows. The other way to fewer bytes is to let them stay in L2: convolve and pool two images (33 MB) at a time
// (config 2).
//
// No bytes at all between the passes, if there is but one: fused_conv_pool.cuh (config 4), for 3 x 3 windows of 8
// channels. It was checked on the simulator and has not been timed.
//
// config 0: TF32, the whole batch. config 1: fp16 between the passes. config 2: TF32, 2 images at a time.
// config 3: fp16, 4 images at a time. config 4: TF32, one kernel.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/check.h"
#include "common/cudnn_conv.h"
#include "common/max_nan.cuh"
#include "common/numeric.cuh"
#include "common/vector.cuh"
#include "fused_conv_pool.cuh"

namespace {

using kernels::Vector;

constexpr int kThreads = 256;
constexpr int kPool = 4;
constexpr int kFusedConfig = 4;
constexpr int64_t kAlignment = 256;  // of every buffer in the workspace

// [planes][channels][positions] -> [planes][positions][channels]. A thread writes 4 channels of a position; of each
// channel, neighbouring threads read neighbouring positions. channels is a multiple of 4.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    channels_last_kernel(T* __restrict__ output, const float* __restrict__ input, int64_t planes, int channels,
                         int64_t positions) {
    const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (index >= planes * positions) return;
    const int64_t plane = index / positions;
    input += plane * channels * positions + index % positions;
    output += index * channels;
    for (int channel = 0; channel < channels; channel += 4) {
        Vector<float, 4> value;
#pragma unroll
        for (int e = 0; e < 4; ++e) value.element[e] = input[(channel + e) * positions];
        kernels::store<4>(output + channel, kernels::from_float<T>(value));
    }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(T* __restrict__ output, const float* __restrict__ input, int count) {
    const int index = blockIdx.x * kThreads + threadIdx.x;
    if (index < count) output[index] = kernels::from_float<T>(input[index]);
}

// One block per image and row of the output. convolved (images, height, width, filters) channels-last; Width: filters
// per load, 16 bytes. filters / Width divides kThreads. Shared: filters x (out_width + 1) floats.
template <typename T, int Width>
__global__ void __launch_bounds__(kThreads, 2)
    pool_kernel(float* __restrict__ output, const T* __restrict__ convolved, const float* __restrict__ bias,
                float scale, int height, int width, int filters) {
    extern __shared__ float tile[];
    const int out_height = height / kPool;
    const int out_width = width / kPool;
    const int image = blockIdx.x / out_height;
    const int out_row = blockIdx.x % out_height;
    const int lanes = filters / Width;
    const int filter = threadIdx.x % lanes * Width;
    const float sign = scale < 0.f ? -1.f : 1.f;
    convolved += (static_cast<int64_t>(image) * height + out_row * kPool) * width * filters + filter;

    for (int column = threadIdx.x / lanes; column < out_width; column += kThreads / lanes) {
        Vector<T, Width> window[kPool][kPool];
#pragma unroll
        for (int i = 0; i < kPool; ++i) {
#pragma unroll
            for (int j = 0; j < kPool; ++j) {
                window[i][j] = kernels::load_streaming<Width>(
                    convolved + (static_cast<int64_t>(i) * width + column * kPool + j) * filters);
            }
        }
#pragma unroll
        for (int e = 0; e < Width; ++e) {
            float largest = -INFINITY;
#pragma unroll
            for (int i = 0; i < kPool; ++i) {
#pragma unroll
                for (int j = 0; j < kPool; ++j) {
                    largest = kernels::max_nan(largest, sign * kernels::to_float(window[i][j].element[e]));
                }
            }
            tile[(filter + e) * (out_width + 1) + column] = scale * tanhf(sign * largest) + bias[filter + e];
        }
    }
    __syncthreads();
    output += (static_cast<int64_t>(image) * filters * out_height + out_row) * out_width;
    for (int index = threadIdx.x; index < filters * out_width; index += kThreads) {
        const int row = index / out_width;
        const int column = index % out_width;
        __stcs(output + static_cast<int64_t>(row) * out_height * out_width + column,
               tile[row * (out_width + 1) + column]);
    }
}

struct Sizes {
    int64_t images, channels, height, width, filters, window_height, window_width;

    int64_t out_height() const { return height - window_height + 1; }
    int64_t out_width() const { return width - window_width + 1; }
};

kernels::Convolution convolution_of(const Sizes& sizes, int64_t images, bool half) {
    kernels::Convolution problem;
    problem.x = kernels::channels_last({images, sizes.channels, sizes.height, sizes.width});
    problem.w = kernels::channels_last({sizes.filters, sizes.channels, sizes.window_height, sizes.window_width});
    problem.y = kernels::channels_last({images, sizes.filters, sizes.out_height(), sizes.out_width()});
    problem.stride = {1, 1};
    problem.padding = {0, 0};
    problem.type = half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
    problem.alignment = 16;
    problem.allow_tf32 = true;
    return problem;
}

bool uses_half(int config) {
    return config == 1 || config == 3;
}

int64_t chunk_of(const Sizes& sizes, int config) {
    return config == 2   ? std::min<int64_t>(2, sizes.images)
           : config == 3 ? std::min<int64_t>(4, sizes.images)
                         : sizes.images;
}

// Where everything lies in the workspace; offsets in bytes. x and the convolution's result are of one chunk of images.
struct Workspace {
    int64_t x, w, bias, convolved, library, end;

    Workspace(const Sizes& s, int64_t chunk, bool half, int64_t library_bytes) {
        const int64_t element = half ? 2 : 4;
        const auto after = [](int64_t start, int64_t bytes) {
            return (start + bytes + kAlignment - 1) / kAlignment * kAlignment;
        };
        x = 0;
        w = after(x, chunk * s.channels * s.height * s.width * element);
        bias = after(w, s.filters * s.channels * s.window_height * s.window_width * element);
        convolved = after(bias, s.filters * element);
        library = after(convolved, chunk * s.filters * s.out_height() * s.out_width() * element);
        end = after(library, library_bytes);
    }
};

// The library's scratch memory for chunks of `chunk` images and for what is left over at the end.
int64_t library_bytes(const Sizes& sizes, int64_t chunk, bool half) {
    int64_t bytes = 0;
    for (int64_t images : {chunk, sizes.images % chunk}) {
        if (images == 0) continue;
        const int64_t wanted = kernels::convolution_workspace_bytes(convolution_of(sizes, images, half),
                                                                    kernels::ConvolutionSearch::kTimed);
        if (wanted < 0) kernels::throw_error("conv_tanh_pool: cuDNN has no engine for this convolution");
        bytes = std::max(bytes, wanted);
    }
    return bytes;
}

template <typename T, int Width>
void run(float* y, const float* x, const float* w, const float* conv_bias, const float* bias, float scale,
         const Sizes& sizes, int64_t chunk, char* memory, const Workspace& place, cudaStream_t stream) {
    const auto blocks = [](int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); };
    const int64_t in_positions = sizes.height * sizes.width;
    const int64_t window = sizes.window_height * sizes.window_width;
    const int64_t out_rows = sizes.out_height() / kPool;
    const int64_t out_columns = sizes.out_width() / kPool;
    T* packed_x = reinterpret_cast<T*>(memory + place.x);
    T* packed_w = reinterpret_cast<T*>(memory + place.w);
    T* packed_bias = reinterpret_cast<T*>(memory + place.bias);
    T* convolved = reinterpret_cast<T*>(memory + place.convolved);

    channels_last_kernel<T><<<blocks(sizes.filters * window), kThreads, 0, stream>>>(
        packed_w, w, sizes.filters, static_cast<int>(sizes.channels), window);
    CUDA_CHECK_LAUNCH();
    convert_kernel<T>
        <<<blocks(sizes.filters), kThreads, 0, stream>>>(packed_bias, conv_bias, static_cast<int>(sizes.filters));
    CUDA_CHECK_LAUNCH();

    const auto tile_bytes = static_cast<size_t>(sizes.filters * (out_columns + 1)) * sizeof(float);
    CUDA_CHECK(cudaFuncSetAttribute(pool_kernel<T, Width>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(tile_bytes)));
    for (int64_t first = 0; first < sizes.images; first += chunk) {
        const int64_t images = std::min(chunk, sizes.images - first);
        channels_last_kernel<T><<<blocks(images * in_positions), kThreads, 0, stream>>>(
            packed_x, x + first * sizes.channels * in_positions, images, static_cast<int>(sizes.channels),
            in_positions);
        CUDA_CHECK_LAUNCH();
        const kernels::ConvolutionOperands operands{packed_x, packed_w, packed_bias, convolved, memory + place.library};
        if (!kernels::run_convolution(convolution_of(sizes, images, sizeof(T) == 2), operands,
                                      kernels::ConvolutionSearch::kTimed, stream)) {
            kernels::throw_error("conv_tanh_pool: cuDNN has no engine for this convolution");
        }
        pool_kernel<T, Width><<<static_cast<unsigned>(images * out_rows), kThreads, tile_bytes, stream>>>(
            y + first * sizes.filters * out_rows * out_columns, convolved, bias, scale,
            static_cast<int>(sizes.out_height()), static_cast<int>(sizes.out_width()), static_cast<int>(sizes.filters));
        CUDA_CHECK_LAUNCH();
    }
}

}  // namespace

// Bytes of device memory the launcher needs.
extern "C" int64_t conv_tanh_pool_workspace_bytes(int64_t images, int64_t channels, int64_t height, int64_t width,
                                                  int64_t filters, int64_t window_height, int64_t window_width,
                                                  int config) {
    if (config == kFusedConfig) return 0;
    const Sizes sizes{images, channels, height, width, filters, window_height, window_width};
    const int64_t chunk = chunk_of(sizes, config);
    const bool half = uses_half(config);
    return Workspace(sizes, chunk, half, library_bytes(sizes, chunk, half)).end;
}

// Contiguous tensors; channels a multiple of 8, filters of 8 with 256 / (filters / 4) whole; the convolution's result
// at least 4 x 4. workspace: conv_tanh_pool_workspace_bytes, 256-byte aligned. Throws kernels::Error.
extern "C" void conv_tanh_pool_launcher(float* y, const float* x, const float* w, const float* conv_bias,
                                        const float* bias, float scale, int64_t images, int64_t channels,
                                        int64_t height, int64_t width, int64_t filters, int64_t window_height,
                                        int64_t window_width, int config, void* workspace, cudaStream_t stream) {
    if (config < 0 || config > kFusedConfig) {
        kernels::throw_error("conv_tanh_pool: config must be 0 to 4, got %d", config);
    }
    if (config == kFusedConfig) {
        if (channels != fused::kChannels || window_height != fused::kWindow || window_width != fused::kWindow) {
            kernels::throw_error("conv_tanh_pool: config 4 is for 8 channels and 3 x 3 windows, got %d and %d x %d",
                                 static_cast<int>(channels), static_cast<int>(window_height),
                                 static_cast<int>(window_width));
        }
        const fused::Problem problem{y,
                                     x,
                                     w,
                                     conv_bias,
                                     bias,
                                     scale,
                                     static_cast<int>(images),
                                     static_cast<int>(height),
                                     static_cast<int>(width),
                                     static_cast<int>(filters),
                                     static_cast<int>(height - window_height + 1) / kPool,
                                     static_cast<int>(width - window_width + 1) / kPool};
        return fused::run(problem, stream);
    }
    const Sizes sizes{images, channels, height, width, filters, window_height, window_width};
    const int64_t chunk = chunk_of(sizes, config);
    const bool half = uses_half(config);
    const Workspace place(sizes, chunk, half, library_bytes(sizes, chunk, half));
    char* memory = static_cast<char*>(workspace);
    if (half) {
        run<__half, 8>(y, x, w, conv_bias, bias, scale, sizes, chunk, memory, place, stream);
    } else {
        run<float, 4>(y, x, w, conv_bias, bias, scale, sizes, chunk, memory, place, stream);
    }
}
