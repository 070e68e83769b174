// The comparison on the GPU: chooses the kernel, and merges what its blocks found.
#include <algorithm>

#include "compare_device.cuh"

namespace {

bool aligned(const void* place) {
    return reinterpret_cast<uintptr_t>(place) % 16 == 0;
}

// Loads of 16 bytes want both tensors contiguous, of one dtype and aligned; all else is walked.
bool packed(const Walk& walk) {
    return walk.ndim == 1 && walk.expected_stride[0] == 1 && walk.actual_stride[0] == 1 &&
           walk.expected_dtype == walk.actual_dtype && aligned(walk.expected) && aligned(walk.actual);
}

}  // namespace

// Compares the two tensors of `walk` (at least one element and one dimension) under `rule` into `tally`, in one pass on
// `stream`, and waits for that stream alone.
NATIVE_API int32_t native_compare_cuda(int32_t device, cudaStream_t stream, const Walk* walk, const Rule* rule,
                                       Tally* tally) {
    ENTER(device);
    // A fixed grid and a fixed order of merging: the same tensors give the same sums every time.
    const int64_t full = int64_t(kBlocksPerMultiprocessor) * multiprocessors(device);
    const int blocks = int(std::min(full, (walk->count + kThreads - 1) / kThreads));
    const Mailbox mailbox(full * sizeof(Tally));
    if (mailbox.memory == nullptr) return mailbox.status;
    Tally* parts = static_cast<Tally*>(mailbox.memory);
    if (packed(*walk))
        launch_packed(*walk, *rule, parts, blocks, stream);
    else
        launch_strided(*walk, *rule, parts, blocks, stream);
    RUNTIME(cudaGetLastError());
    RUNTIME(cudaStreamSynchronize(stream));
    *tally = empty_tally();
    for (int b = 0; b < blocks; ++b) merge(*tally, parts[b]);
    tally->finite += walk->count;
    return kOk;
}
