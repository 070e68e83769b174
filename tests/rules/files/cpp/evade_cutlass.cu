// expect: library:3
// CUTLASS.
#include <cutlass/gemm/device/gemm.h>
