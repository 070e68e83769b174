// Thread block clusters (sm_90): up to 8 blocks (16 non-portably) that run at once on neighbouring SMs and can write
// into each other's shared memory.
//
// Pattern for a value per block: every block writes its value into slot [its rank] of every block's shared memory with
// store_cluster, all call cluster_sync, and each reads its own slots. One cluster_sync must come first of all, since a
// block must not be written to before it has started; and none may leave while another can still write to it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "check.h"
#include "cp_async.cuh"

namespace kernels {

__device__ __forceinline__ uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
    return rank;
}

// Barrier over all threads of all blocks of the cluster; writes before it are visible after it, remote ones included.
__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

// Writes `value` to the place in block `rank`'s shared memory that `shared` names in this block's.
__device__ __forceinline__ void store_cluster(float2* shared, uint32_t rank, float2 value) {
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(remote) : "r"(shared_address(shared)), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};\n" ::"r"(remote), "f"(value.x), "f"(value.y) : "memory");
}

// How many clusters of `cluster` blocks the current device holds at once. Blocks of one cluster must share a GPC, so
// this may be less than (SMs / cluster).
template <typename Kernel>
int max_active_clusters(Kernel* kernel, int cluster, int threads, size_t shared_bytes) {
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(cluster);
    launch.blockDim = dim3(threads);
    launch.dynamicSmemBytes = shared_bytes;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    int clusters = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, reinterpret_cast<const void*>(kernel), &launch));
    return clusters;
}

}  // namespace kernels
