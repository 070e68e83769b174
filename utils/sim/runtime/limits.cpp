// Launches beyond the device's limits are refused as a device refuses them, and reported.
#include <algorithm>
#include <map>
#include <set>

#include "state.h"

namespace sim {

namespace {

std::map<const void*, size_t>& opt_ins() {
    static std::map<const void*, size_t> table;
    return table;
}

std::set<const void*>& non_portable() {
    static std::set<const void*> kernels;
    return kernels;
}

}  // namespace

void allow_non_portable_cluster(const void* address, bool yes) {
    if (yes)
        non_portable().insert(address);
    else
        non_portable().erase(address);
}

u32 most_blocks_in_cluster(const void* address) {
    return (address ? non_portable().count(address) != 0 : !non_portable().empty()) ? 16 : 8;
}

void set_opt_in_shared(const void* address, size_t bytes) {
    opt_ins()[address] = bytes;
}

size_t opt_in_shared(const void* address) {
    if (address) {
        auto found = opt_ins().find(address);
        return found == opt_ins().end() ? 0 : found->second;
    }
    // Which instantiation is launched is not known by its name: the largest any was given.
    size_t most = 0;
    for (const auto& [key, bytes] : opt_ins()) most = std::max(most, bytes);
    return most;
}

namespace {

bool refuse(const Kernel& kernel, std::string text, cudaError_t error) {
    Report r;
    r.kind = "launch_limit";
    r.kernel = kernel.name;
    r.place = r.launched = {kernel.file, kernel.line};
    r.message = std::move(text);
    add_report(std::move(r));
    last_error = error;
    return false;
}

}  // namespace

bool within_limits(const Kernel& kernel, const Config& c) {
    const u64 threads = u64(c.block.x) * c.block.y * c.block.z;
    auto size = [](dim3 d) {
        return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")";
    };
    if (threads == 0 || u64(c.grid.x) * c.grid.y * c.grid.z == 0)
        return refuse(kernel, "a grid or block dimension is zero: grid " + size(c.grid) + ", block " + size(c.block),
                      cudaErrorInvalidConfiguration);
    if (threads > MAX_THREADS || c.block.x > 1024 || c.block.y > 1024 || c.block.z > 64)
        return refuse(kernel, "block " + size(c.block) + " is beyond 1024 threads, or beyond (1024, 1024, 64)",
                      cudaErrorInvalidConfiguration);
    if (c.grid.x > 2147483647u || c.grid.y > 65535 || c.grid.z > 65535)
        return refuse(kernel, "grid " + size(c.grid) + " is beyond (2147483647, 65535, 65535)",
                      cudaErrorInvalidConfiguration);
    if (c.shared > std::max(SHARED_DEFAULT, opt_in_shared(kernel.address)))
        return refuse(kernel,
                      std::to_string(c.shared) + " bytes of dynamic shared memory are more than the " +
                          std::to_string(std::max(SHARED_DEFAULT, opt_in_shared(kernel.address))) +
                          " this kernel may have (cudaFuncSetAttribute raises it to at most 232448)",
                      cudaErrorInvalidValue);
    const u64 cluster = u64(c.cluster.x) * c.cluster.y * c.cluster.z;
    if (cluster == 0 || cluster > most_blocks_in_cluster(kernel.address))
        return refuse(kernel,
                      "a cluster " + size(c.cluster) + " has more than " +
                          std::to_string(most_blocks_in_cluster(kernel.address)) +
                          " blocks (8 are portable; cudaFuncAttributeNonPortableClusterSizeAllowed raises it to 16)",
                      cudaErrorInvalidClusterSize);
    if (c.grid.x % c.cluster.x || c.grid.y % c.cluster.y || c.grid.z % c.cluster.z)
        return refuse(kernel, "grid " + size(c.grid) + " is not a whole number of clusters " + size(c.cluster),
                      cudaErrorInvalidClusterSize);
    return true;
}

}  // namespace sim
