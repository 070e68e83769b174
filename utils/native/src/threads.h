// Runs numbered pieces of work on as many threads as the machine grants this process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

template <class Work>
void for_each_chunk(int64_t chunks, const Work& work) {
    // hardware_concurrency counts the processors of the affinity mask; 0 means that it does not know.
    const int64_t processors = std::max(1u, std::thread::hardware_concurrency());
    std::atomic<int64_t> next{0};
    const auto run = [&] {
        for (int64_t chunk = next++; chunk < chunks; chunk = next++) work(chunk);
    };
    std::vector<std::thread> helpers;
    for (int64_t i = 1; i < std::min(processors, chunks); ++i) {
        // Where no more threads may be had (RLIMIT_NPROC), those there are do the work.
        try {
            helpers.emplace_back(run);
        } catch (const std::system_error&) {
            break;
        }
    }
    run();
    for (std::thread& helper : helpers) helper.join();
}
