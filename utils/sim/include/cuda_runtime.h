// Stands in for CUDA's cuda_runtime.h when kernels are built for the simulator.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <cassert>
#include <cstdio>

#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif
#undef __maxnreg__
#define __maxnreg__(...)
#undef __block_size__
#define __block_size__(...)
#undef __grid_constant__
#define __grid_constant__
#undef __shared__
#define __shared__ SIM_SHARED_NOT_REWRITTEN
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __nv_pure__
#define __nv_pure__
#define __align__(n) __attribute__((aligned(n)))

#include <sim/api.h>
// A binding sees what a host compiler sees of CUDA: the runtime API.
#ifndef SIM_HOST_ONLY
#include <sim/atomics.h>
#include <sim/math.h>
#include <sim/memory.h>
#include <sim/warp.h>
#endif
