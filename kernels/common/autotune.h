// Choosing the fastest of several ways to compute the same thing, by timing them on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>
#include <algorithm>

#include <limits>
#include <vector>

#include "check.h"

namespace kernels {

// While a stream is captured into a CUDA graph nothing runs, so nothing can be timed.
inline bool is_capturing(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    CUDA_CHECK(cudaStreamIsCapturing(stream, &status));
    return status != cudaStreamCaptureStatusNone;
}

class Event {
  public:
    Event() { CUDA_CHECK(cudaEventCreate(&event_)); }
    ~Event() { cudaEventDestroy(event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

// Shortest of `repeats` runs of run(), in milliseconds, or infinity when a run returns false. Blocks the calling
// thread, never the device: other streams go on.
template <typename Run>
float shortest_ms(int repeats, cudaStream_t stream, Run&& run) {
    Event start, stop;
    float shortest = std::numeric_limits<float>::infinity();
    for (int repeat = 0; repeat < repeats; ++repeat) {
        CUDA_CHECK(cudaEventRecord(start.get(), stream));
        if (!run()) {
            cudaGetLastError();  // a refused launch is this candidate's failure alone
            return std::numeric_limits<float>::infinity();
        }
        CUDA_CHECK(cudaEventRecord(stop.get(), stream));
        CUDA_CHECK(cudaEventSynchronize(stop.get()));
        float elapsed = 0;
        CUDA_CHECK(cudaEventElapsedTime(&elapsed, start.get(), stop.get()));
        shortest = std::min(shortest, elapsed);
    }
    return shortest;
}

// Index of the fastest of `count` candidates, or -1 when none runs. run(i) enqueues candidate i on `stream` and returns
// whether that was accepted; it is called many times over the same buffers, so it must not change what it reads.
//
// Two rounds: each candidate once to load its code and twice on the clock; then the best four in turn, five times, so
// that a drifting clock does not decide.
template <typename Run>
int fastest(int count, cudaStream_t stream, Run&& run) {
    constexpr int kFinalists = 4;
    constexpr int kFinalRounds = 5;
    struct Entry {
        int index;
        float ms;
    };
    std::vector<Entry> entries;
    for (int i = 0; i < count; ++i) {
        const auto run_this = [&] { return run(i); };
        if (shortest_ms(1, stream, run_this) == std::numeric_limits<float>::infinity()) continue;
        entries.push_back({i, shortest_ms(2, stream, run_this)});
    }
    if (entries.empty()) return -1;
    const auto faster = [](const Entry& a, const Entry& b) { return a.ms < b.ms; };
    std::stable_sort(entries.begin(), entries.end(), faster);
    if (entries.size() > kFinalists) entries.resize(kFinalists);
    for (int round = 0; round < kFinalRounds; ++round) {
        for (Entry& entry : entries) {
            entry.ms = std::min(entry.ms, shortest_ms(1, stream, [&] { return run(entry.index); }));
        }
    }
    return std::min_element(entries.begin(), entries.end(), faster)->index;
}

}  // namespace kernels
