// Python binding of matmul.cu.
#include "common/matmul_binding.h"
#include "../binding_registry.h"

REGISTER_BINDING(matmul, kernels::register_matmul);
