// See CUDAContextLight.h here.
#pragma once
#include <ATen/cuda/CUDAContextLight.h>
