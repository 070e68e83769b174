// The summary of a tensor on the CPU, in chunks of a fixed size merged in order.
#include <algorithm>
#include <vector>

#include "summary.h"
#include "threads.h"
#include "walker.h"

namespace {
constexpr int64_t kChunk = 1 << 18;  // elements
}

// Summarises the walk's `actual`.
NATIVE_API int32_t native_summary_cpu(const Walk* walk, Summary* summary) {
    const int width = item_size(walk->actual_dtype);
    std::vector<Summary> parts((walk->count + kChunk - 1) / kChunk);
    for_each_chunk(int64_t(parts.size()), [&](int64_t chunk) {
        Summary part = empty_summary();
        const int64_t end = std::min(walk->count, (chunk + 1) * kChunk);
        Walker<0> walker(*walk, chunk * kChunk, 1);
        for (int64_t i = chunk * kChunk; i < end; ++i, walker.advance(*walk))
            add(part, walk->actual_dtype, static_cast<const char*>(walk->actual) + walker.actual * width);
        parts[chunk] = part;
    });
    *summary = empty_summary();
    for (const Summary& part : parts) merge(*summary, part);
    return kOk;
}
