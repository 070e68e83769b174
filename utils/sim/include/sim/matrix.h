// ldmatrix, stmatrix and mma.sync: the register layouts of the PTX manual, products summed in double and rounded once
// (the order in which tensor cores add is not defined).
//
// In all layouts lane = 4 g + t. A register of 32 bits holds e elements; register i of A is row g + 8 (i & 1), columns
// from 4 e (i >> 1) + e t; register i of B is rows from 4 e i + e t, column g.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <sim/warp.h>

namespace sim {

struct Tf32 {
    u32 bits;
};
struct E4m3 {
    u8 bits;
    E4m3() = default;
    explicit E4m3(float x) : bits(to_fp8(x, true, __NV_E4M3)) {}
};
struct E5m2 {
    u8 bits;
    E5m2() = default;
    explicit E5m2(float x) : bits(to_fp8(x, true, __NV_E5M2)) {}
};

SIM_FN double number(Tf32 x) {
    return bits_as<float>(x.bits & ~0x1fffu);
}
SIM_FN double number(__half x) {
    return __half2float(x);
}
SIM_FN double number(__nv_bfloat16 x) {
    return __bfloat162float(x);
}
SIM_FN double number(double x) {
    return x;
}
SIM_FN double number(float x) {
    return x;
}
SIM_FN double number(signed char x) {
    return x;
}
SIM_FN double number(unsigned char x) {
    return x;
}
SIM_FN double number(int x) {
    return x;
}
SIM_FN double number(E4m3 x) {
    return of_fp8(x.bits, __NV_E4M3);
}
SIM_FN double number(E5m2 x) {
    return of_fp8(x.bits, __NV_E5M2);
}

template <class T>
T rounded(double x) {
    if constexpr (std::is_same_v<T, int>)
        return static_cast<int>(static_cast<unsigned>(static_cast<long long>(x)));
    else
        return T(x);
}

// What each lane shows the others; the first exchange says where it is, the second keeps it alive until all have read.
struct MmaOperands {
    const void *a, *b;
};

template <int M, int N, int K, class D, class A, class B, class C, class W>
void mma(W* d, const W* a, const W* b, const W* c, const char* file, int line) {
    if constexpr (M == 8 && sizeof(A) == 2) {
        unsupported("mma.sync.m8n8k4 of half", file, line);
    } else {
        constexpr int E = sizeof(W) / sizeof(A);  // elements in a register
        const MmaOperands mine{a, b};
        const Slot& slot = exchange(~0u, reinterpret_cast<u64>(&mine), WarpKind::MATRIX, file, line);
        if (slot.lanes != ~0u) fatal("missing_lanes", "mma.sync needs all 32 lanes", file, line);
        const int lane = static_cast<int>(lane_id()), g = lane >> 2, t = lane & 3;
        auto at_a = [&](int row, int k) {
            const int i = (k / (4 * E)) * (M == 8 ? 1 : 2) + (row >> 3), holder = (row & 7) * 4 + k % (4 * E) / E;
            const W* words = static_cast<const W*>(reinterpret_cast<const MmaOperands*>(slot.value[holder])->a);
            A value;
            __builtin_memcpy(static_cast<void*>(&value), reinterpret_cast<const char*>(words + i) + k % E * sizeof(A),
                             sizeof(A));
            return number(value);
        };
        auto at_b = [&](int k, int column) {
            const int i = k / (4 * E), holder = column * 4 + k % (4 * E) / E;
            const W* words = static_cast<const W*>(reinterpret_cast<const MmaOperands*>(slot.value[holder])->b);
            B value;
            __builtin_memcpy(static_cast<void*>(&value), reinterpret_cast<const char*>(words + i) + k % E * sizeof(B),
                             sizeof(B));
            return number(value);
        };
        for (int i = 0; i < M * N / 32; ++i) {
            const int row = g + 8 * (i >> 1), column = 2 * t + (i & 1);
            C start;
            __builtin_memcpy(static_cast<void*>(&start), reinterpret_cast<const char*>(c) + i * sizeof(C), sizeof(C));
            double sum = number(start);
            for (int k = 0; k < K; ++k) sum += at_a(row, k) * at_b(k, column);
            const D result = rounded<D>(sum);
            __builtin_memcpy(reinterpret_cast<char*>(d) + i * sizeof(D), &result, sizeof(D));
        }
        exchange(~0u, 0, WarpKind::MATRIX, file, line);
    }
}

template <int COUNT, bool TRANSPOSED>
SIM_RAW void ldmatrix(u32* out, const char* row, const char* file, int line) {
    const u32 lane = lane_id();
    if (lane < 8 * COUNT) check_aligned(row, 16, file, line);
    const Slot& slot = exchange(~0u, reinterpret_cast<u64>(row), WarpKind::MATRIX, file, line);
    if (slot.lanes != ~0u) fatal("missing_lanes", "ldmatrix needs all 32 lanes", file, line);
    const u32 g = lane >> 2, t = lane & 3;
    for (u32 i = 0; i < COUNT; ++i) {
        u16 pair[2];
        for (u32 j = 0; j < 2; ++j) {
            const u32 r = TRANSPOSED ? 2 * t + j : g, column = TRANSPOSED ? g : 2 * t + j;
            const char* from = reinterpret_cast<const char*>(slot.value[i * 8 + r]) + 2 * column;
            SIM_ANNOUNCE(from, 2, READ);
            __builtin_memcpy(&pair[j], from, 2);
        }
        out[i] = static_cast<u32>(pair[0]) | static_cast<u32>(pair[1]) << 16;
    }
    // `out` is written; the addresses may go.
}

template <int COUNT, bool TRANSPOSED>
SIM_RAW void stmatrix(const u32* in, char* row, const char* file, int line) {
    const u32 lane = lane_id();
    if (lane < 8 * COUNT) check_aligned(row, 16, file, line);
    const Slot& slot = exchange(~0u, reinterpret_cast<u64>(row), WarpKind::MATRIX, file, line);
    if (slot.lanes != ~0u) fatal("missing_lanes", "stmatrix needs all 32 lanes", file, line);
    const u32 g = lane >> 2, t = lane & 3;
    for (u32 i = 0; i < COUNT; ++i)
        for (u32 j = 0; j < 2; ++j) {
            const u32 r = TRANSPOSED ? 2 * t + j : g, column = TRANSPOSED ? g : 2 * t + j;
            char* to = reinterpret_cast<char*>(slot.value[i * 8 + r]) + 2 * column;
            const u16 half = static_cast<u16>(in[i] >> (16 * j));
            SIM_ANNOUNCE(to, 2, WRITE);
            __builtin_memcpy(to, &half, 2);
        }
}

}  // namespace sim
