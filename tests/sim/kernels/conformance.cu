// The conformance suite: one small kernel per check, the same source for the simulator and for a device. Each has 256
// threads unless it says otherwise; the answers are in tests/sim/conformance_answers.py, for the same inputs.
// clang-format off: a table, one check a line
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <type_traits>

namespace cg = cooperative_groups;
using u8 = unsigned char;
using u32 = unsigned int;
using u64 = unsigned long long;
using s64 = long long;

constexpr int N = 256;

struct In {
    const u32 *a, *b, *c;
    const float *f, *g, *h;
    const double *d, *e;
    const u64* q;
};

#define LOAD_ALL                                                                                        \
    const u32 a = in.a[i], b = in.b[i], c = in.c[i];                                                    \
    const float f = in.f[i], g = in.g[i], h = in.h[i];                                                  \
    const double d = in.d[i], e = in.e[i];                                                              \
    const u64 q = in.q[i];                                                                              \
    (void)a, (void)b, (void)c, (void)f, (void)g, (void)h, (void)d, (void)e, (void)q;

// out[i] = EXPRESSION of the inputs at i.
#define MAP(NAME, T, ...)                                                                               \
    __global__ void NAME(In in, T* out) {                                                               \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                            \
        LOAD_ALL out[i] = __VA_ARGS__;                                                                  \
    }                                                                                                   \
    extern "C" int NAME##_run(const In* in, void* out) {                                                \
        NAME<<<4, 64>>>(*in, static_cast<T*>(out));                                                     \
        return static_cast<int>(cudaGetLastError());                                                    \
    }

// A body that may use i, lane, t (thread of the block), the inputs at i, and sets out[...]; BLOCKS of THREADS.
#define KERNEL(NAME, T, BLOCKS, THREADS, ...)                                                           \
    __global__ void NAME(In in, T* out) {                                                               \
        const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x, lane = t & 31;            \
        (void)t, (void)lane;                                                                            \
        LOAD_ALL __VA_ARGS__                                                                            \
    }                                                                                                   \
    extern "C" int NAME##_run(const In* in, void* out) {                                                \
        NAME<<<BLOCKS, THREADS>>>(*in, static_cast<T*>(out));                                           \
        return static_cast<int>(cudaGetLastError());                                                    \
    }

// ---- integers
MAP(clz, int, __clz(static_cast<int>(a)))
MAP(clzll, int, __clzll(static_cast<s64>(q)))
MAP(popc, int, __popc(a))
MAP(popcll, int, __popcll(q))
MAP(ffs, int, __ffs(static_cast<int>(a)))
MAP(brev, u32, __brev(a))
MAP(brevll, u64, __brevll(q))
MAP(byte_perm, u32, __byte_perm(a, b, c))
MAP(funnel_l, u32, __funnelshift_l(a, b, c))
MAP(funnel_r, u32, __funnelshift_r(a, b, c))
MAP(funnel_lc, u32, __funnelshift_lc(a, b, c & 63))
MAP(funnel_rc, u32, __funnelshift_rc(a, b, c & 63))
MAP(mulhi, int, __mulhi(static_cast<int>(a), static_cast<int>(b)))
MAP(umulhi, u32, __umulhi(a, b))
MAP(umul64hi, u64, __umul64hi(q, q ^ 0x1234567812345678ull))
MAP(mul24, int, __mul24(static_cast<int>(a), static_cast<int>(b)))
MAP(umul24, u32, __umul24(a, b))
MAP(sad, u32, __sad(static_cast<int>(a), static_cast<int>(b), c))
MAP(usad, u32, __usad(a, b, c))
MAP(hadd, int, __hadd(static_cast<int>(a), static_cast<int>(b)))
MAP(rhadd, int, __rhadd(static_cast<int>(a), static_cast<int>(b)))
MAP(dp4a, int, __dp4a(static_cast<int>(a), static_cast<int>(b), static_cast<int>(c)))
MAP(udp4a, u32, __dp4a(a, b, c))
MAP(vadd4, u32, __vadd4(a, b))
MAP(vmaxs2, u32, __vmaxs2(a, b))
MAP(vabsdiffu4, u32, __vabsdiffu4(a, b))
MAP(min_int, int, min(static_cast<int>(a), static_cast<int>(b)))
MAP(max_unsigned, u32, max(a, b))
MAP(max_mixed, u64, max(static_cast<u64>(a), q))

// ---- single and double precision
MAP(fadd_rz, float, __fadd_rz(f, g))
MAP(fadd_ru, float, __fadd_ru(f, g))
MAP(fadd_rd, float, __fadd_rd(f, g))
MAP(fmul_rz, float, __fmul_rz(f, g))
MAP(fmul_ru, float, __fmul_ru(f, g))
MAP(fdiv_rn, float, __fdiv_rn(f, g))
MAP(fsqrt_rn, float, __fsqrt_rn(fabsf(f)))
MAP(fsqrt_rd, float, __fsqrt_rd(fabsf(f)))
MAP(frcp_rn, float, __frcp_rn(f))
MAP(fmaf_rn, float, fmaf(f, g, h))
MAP(fma_double, double, fma(d, e, d))
MAP(dadd_rz, double, __dadd_rz(d, e))
MAP(dmul_ru, double, __dmul_ru(d, e))
MAP(fmin_nan, float, fminf(f, g))
MAP(fmax_nan, float, fmaxf(f, g))
MAP(saturate, float, __saturatef(f))
MAP(float2int_rn, int, __float2int_rn(f))
MAP(float2int_rz, int, __float2int_rz(f))
MAP(float2int_ru, int, __float2int_ru(f))
MAP(float2int_rd, int, __float2int_rd(f))
MAP(float2uint_rz, u32, __float2uint_rz(f))
MAP(double2ll_rn, s64, __double2ll_rn(d))
MAP(int2float_rn, float, __int2float_rn(static_cast<int>(a)))
MAP(uint2float_rn, float, __uint2float_rn(a))
MAP(float_as_int, int, __float_as_int(f))
MAP(int_as_float, u32, __float_as_uint(__uint_as_float(a & 0x7f7fffffu)))
MAP(hiloint, double, __hiloint2double(static_cast<int>(a & 0x3fffffff), static_cast<int>(b)))
MAP(ceilf_, float, ceilf(f))
MAP(rintf_, float, rintf(f))
MAP(truncf_, float, truncf(f))
MAP(fmodf_, float, fmodf(f, 3.25f))
MAP(copysignf_, float, copysignf(f, g))
MAP(expf_, float, expf(g))
MAP(fast_exp, float, __expf(g))
MAP(logf_, float, logf(fabsf(f) + 0.5f))
MAP(tanhf_, float, tanhf(g))
MAP(erff_, float, erff(g))
MAP(rsqrtf_, float, rsqrtf(fabsf(g) + 0.5f))
MAP(powf_, float, powf(fabsf(g) + 0.1f, 1.7f))
MAP(sinpif_, float, sinpif(g))
MAP(normcdff_, float, normcdff(g))
MAP(erfinvf_, float, erfinvf(g / 9.0f))
MAP(cbrtf_, float, cbrtf(g))
MAP(log1p_, double, log1p(fabs(d)))
MAP(fdividef_, float, __fdividef(g, fabsf(h) + 1.0f))

// ---- half, bfloat16, fp8: bits out
MAP(half_from_float, unsigned short, __half_as_ushort(__float2half(f)))
MAP(half_rz, unsigned short, __half_as_ushort(__float2half_rz(g)))
MAP(half_ru, unsigned short, __half_as_ushort(__float2half_ru(g)))
MAP(half_rd, unsigned short, __half_as_ushort(__float2half_rd(g)))
MAP(half_to_float, float, __half2float(__ushort_as_half(static_cast<unsigned short>(a & 0x7bff))))
MAP(half_add, unsigned short, __half_as_ushort(__hadd(__float2half(g), __float2half(h))))
MAP(half_mul, unsigned short, __half_as_ushort(__float2half(g) * __float2half(h)))
MAP(half_div, unsigned short, __half_as_ushort(__float2half(g) / __float2half(fabsf(h) + 1.0f)))
MAP(half_fma, unsigned short, __half_as_ushort(__hfma(__float2half(g), __float2half(h), __float2half(g))))
MAP(half_max, unsigned short, __half_as_ushort(__hmax(__float2half(g), __float2half(h))))
MAP(half_less, int, __hlt(__float2half(g), __float2half(h)) ? 1 : 0)
MAP(half_int, int, __half2int_rz(__float2half(g * 100.0f)))
MAP(half_sqrt, unsigned short, __half_as_ushort(hsqrt(__float2half(fabsf(g)))))
MAP(half2_fma, u32, [&] {
    const __half2 r = __hfma2(__floats2half2_rn(f > 1e4f || f < -1e4f || f != f ? 1.0f : f, g), __floats2half2_rn(h, g), __floats2half2_rn(g, h));
    return static_cast<u32>(__half_as_ushort(__low2half(r))) | static_cast<u32>(__half_as_ushort(__high2half(r))) << 16;
}())
MAP(half2_float2, float, __half22float2(__floats2half2_rn(g, h)).y)
MAP(bf16_from_float, unsigned short, __bfloat16_as_ushort(__float2bfloat16(g)))
MAP(bf16_rz, unsigned short, __bfloat16_as_ushort(__float2bfloat16_rz(g)))
MAP(bf16_to_float, float, __bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(a & 0x7f7f))))
MAP(bf16_add, unsigned short, __bfloat16_as_ushort(__float2bfloat16(g) + __float2bfloat16(h)))
MAP(bf16_mul, unsigned short, __bfloat16_as_ushort(__hmul(__float2bfloat16(g), __float2bfloat16(h))))
MAP(bf16_fma, unsigned short, __bfloat16_as_ushort(__hfma(__float2bfloat16(g), __float2bfloat16(h), __float2bfloat16(g))))
MAP(bf162_low, float, __low2float(__floats2bfloat162_rn(g, h)))
MAP(fp8_e4m3, u8, __nv_fp8_e4m3(g).__x)
MAP(fp8_e5m2, u8, __nv_fp8_e5m2(g).__x)
MAP(fp8_e4m3_back, float, static_cast<float>(__nv_fp8_e4m3(g)))

// ---- votes, shuffles, match, reduce
KERNEL(shfl_idx, u32, 4, 64, out[i] = __shfl_sync(0xffffffffu, a, (lane * 7 + 3) & 31);)
KERNEL(shfl_idx_8, u32, 4, 64, out[i] = __shfl_sync(0xffffffffu, a, lane + 3, 8);)
KERNEL(shfl_up, u32, 4, 64, out[i] = __shfl_up_sync(0xffffffffu, a, 3);)
KERNEL(shfl_up_16, u32, 4, 64, out[i] = __shfl_up_sync(0xffffffffu, a, 5, 16);)
KERNEL(shfl_down, u32, 4, 64, out[i] = __shfl_down_sync(0xffffffffu, a, 7);)
KERNEL(shfl_down_8, u32, 4, 64, out[i] = __shfl_down_sync(0xffffffffu, a, 2, 8);)
KERNEL(shfl_xor, u32, 4, 64, out[i] = __shfl_xor_sync(0xffffffffu, a, 13);)
KERNEL(shfl_xor_16, u32, 4, 64, out[i] = __shfl_xor_sync(0xffffffffu, a, 9, 16);)
KERNEL(shfl_double, double, 4, 64, out[i] = __shfl_xor_sync(0xffffffffu, d, 1);)
KERNEL(shfl_u64, u64, 4, 64, out[i] = __shfl_down_sync(0xffffffffu, q, 1);)
KERNEL(shfl_half, float, 4, 64, out[i] = __half2float(__shfl_xor_sync(0xffffffffu, __float2half(g), 4));)
KERNEL(shfl_subset, u32, 4, 64, u32 r = 0; if (lane < 12) r = __shfl_xor_sync(0x00000fffu, a, 2); out[i] = r;)
KERNEL(ballot, u32, 4, 64, out[i] = __ballot_sync(0xffffffffu, a & 1);)
KERNEL(ballot_subset, u32, 4, 64, u32 r = 0; if (lane % 2) r = __ballot_sync(0xaaaaaaaau, a & 2); out[i] = r;)
KERNEL(any_all, u32, 4, 64, out[i] = (__any_sync(0xffffffffu, a > 0xf0000000u) ? 1 : 0) | (__all_sync(0xffffffffu, a > 0x04000000u) ? 2 : 0);)
KERNEL(match_any, u32, 4, 64, out[i] = __match_any_sync(0xffffffffu, a % 5);)
KERNEL(match_all, u32, 4, 64, int p; const u32 m = __match_all_sync(0xffffffffu, blockIdx.x % 2 ? a : 7u, &p); out[i] = p ? m - 1 : 7;)
KERNEL(reduce_add, u32, 4, 64, out[i] = __reduce_add_sync(0xffffffffu, a);)
KERNEL(reduce_min, int, 4, 64, out[i] = __reduce_min_sync(0xffffffffu, static_cast<int>(a));)
KERNEL(reduce_xor, u32, 4, 64, out[i] = __reduce_xor_sync(0xffffffffu, a);)
KERNEL(activemask_full, u32, 4, 64, __syncwarp(); out[i] = __activemask();)
KERNEL(warp_prefix, u32, 4, 64, u32 sum = a; for (int delta = 1; delta < 32; delta *= 2) { const u32 other = __shfl_up_sync(0xffffffffu, sum, delta); if (lane >= delta) sum += other; } out[i] = sum;)
KERNEL(divergent_shuffles, u32, 4, 64, u32 r; if (lane < 16) r = __shfl_xor_sync(0x0000ffffu, a, 1); else r = __shfl_xor_sync(0xffff0000u, a, 2); out[i] = r;)

// ---- barriers and shared memory
KERNEL(sync_count, int, 4, 64, out[i] = __syncthreads_count(a & 1);)
KERNEL(sync_and_or, int, 4, 64, const int all = __syncthreads_and(a > 1000); const int any = __syncthreads_or(a > 0xffffff00u); out[i] = (all ? 1 : 0) + (any ? 2 : 0);)
KERNEL(shared_reverse, u32, 4, 64, __shared__ u32 s[64]; s[t] = a; __syncthreads(); out[i] = s[63 - t];)
KERNEL(shared_two, u32, 4, 64, __shared__ u32 s[64], r[64]; s[t] = a; r[63 - t] = b; __syncthreads(); out[i] = s[(t + 1) % 64] ^ r[t];)
KERNEL(shared_2d, u32, 1, 256, __shared__ u32 tile[16][17]; tile[t / 16][t % 16] = a; __syncthreads(); out[i] = tile[t % 16][t / 16];)
KERNEL(shared_struct, u32, 4, 64, struct Pair { u32 x; float y; }; __shared__ Pair s[64]; s[t].x = a; s[t].y = g; __syncthreads(); out[i] = s[t ^ 1].x + (s[t ^ 1].y > 0 ? 1 : 0);)
KERNEL(block_sum, u32, 4, 64, __shared__ u32 parts[2]; u32 sum = a; for (int delta = 16; delta; delta /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, delta); if (lane == 0) parts[t / 32] = sum; __syncthreads(); out[i] = parts[0] + parts[1];)
KERNEL(named_barrier, u32, 1, 256, __shared__ u32 s[256]; s[t] = a; if (t < 128) { asm volatile("bar.sync 1, 128;" ::: "memory"); out[i] = s[127 - t]; } else { asm volatile("bar.sync 2, 128;" ::: "memory"); out[i] = s[383 - t]; })
KERNEL(polling_warp, u32, 4, 64, __shared__ u32 flag; if (t == 0) flag = 0; __syncthreads(); if (t < 32) { u32 seen = 0; while (!seen) { if (lane == 0) seen = atomicAdd(&flag, 0u); seen = __shfl_sync(0xffffffffu, seen, 0); } out[i] = seen + t; } else { __syncwarp(); if (lane == 31) atomicExch(&flag, 7u); out[i] = a; })
KERNEL(special_registers, u32, 4, 64, u32 l; u32 x; u32 lt; asm volatile("mov.u32 %0, %%laneid;" : "=r"(l)); asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(x)); asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lt)); out[i] = l + 100 * x + (lt & 0xff00u);)

__global__ void dynamic_shared(In in, u32* out, int extra) {
    extern __shared__ __align__(16) unsigned char raw[];
    u32* s = reinterpret_cast<u32*>(raw);
    float* more = reinterpret_cast<float*>(s + blockDim.x);
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t] = in.a[i];
    more[t] = static_cast<float>(extra + t);
    __syncthreads();
    out[i] = s[blockDim.x - 1 - t] + static_cast<u32>(more[(t + 1) % blockDim.x]);
}
extern "C" int dynamic_shared_run(const In* in, void* out) {
    dynamic_shared<<<4, 64, 64 * 8>>>(*in, static_cast<u32*>(out), 5);
    return static_cast<int>(cudaGetLastError());
}
__global__ void large_shared(In in, u32* out) {
    extern __shared__ u32 s[];
    const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    s[t + 16000] = in.a[i];
    __syncthreads();
    out[i] = s[16063 - t];
}
extern "C" int large_shared_run(const In* in, void* out) {
    if (const cudaError_t error = cudaFuncSetAttribute(large_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 65000)) return static_cast<int>(error);
    large_shared<<<4, 64, 65000>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void dims_3d(In in, u32* out) {
    const u32 block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * 32 + thread] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z;
}
extern "C" int dims_3d_run(const In* in, void* out) {
    dims_3d<<<dim3(2, 2, 2), dim3(4, 4, 2)>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}

// ---- atomics: 256 threads into few places
#define ATOMIC(NAME, T, INIT, ...)                                                                      \
    __global__ void NAME##_set(T* out) { out[threadIdx.x] = INIT; }                                     \
    __global__ void NAME(In in, T* out) {                                                               \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;                                            \
        LOAD_ALL T* p = &out[i % 8];                                                                    \
        __VA_ARGS__;                                                                                    \
    }                                                                                                   \
    extern "C" int NAME##_run(const In* in, void* out) {                                                \
        NAME##_set<<<1, 256>>>(static_cast<T*>(out));                                                   \
        NAME<<<4, 64>>>(*in, static_cast<T*>(out));                                                     \
        return static_cast<int>(cudaGetLastError());                                                    \
    }
ATOMIC(atomic_add_int, int, 5, atomicAdd(p, static_cast<int>(a)))
ATOMIC(atomic_add_unsigned, u32, 5, atomicAdd(p, a))
ATOMIC(atomic_add_u64, u64, 5, atomicAdd(p, q))
ATOMIC(atomic_add_float, float, 5, atomicAdd(p, static_cast<float>(a % 1000)))
ATOMIC(atomic_add_double, double, 5, atomicAdd(p, static_cast<double>(a % 100000)))
ATOMIC(atomic_sub_int, int, 5, atomicSub(p, static_cast<int>(a)))
ATOMIC(atomic_min_int, int, 5, atomicMin(p, static_cast<int>(a)))
ATOMIC(atomic_max_unsigned, u32, 5, atomicMax(p, a))
ATOMIC(atomic_max_s64, s64, 5, atomicMax(p, static_cast<s64>(q)))
ATOMIC(atomic_min_u64, u64, ~0ull, atomicMin(p, q))
ATOMIC(atomic_and, u32, 0xffffffffu, atomicAnd(p, a | 0xff00ff00u))
ATOMIC(atomic_or, u32, 0, atomicOr(p, a & 0x11111111u))
ATOMIC(atomic_xor, u32, 9, atomicXor(p, a))
ATOMIC(atomic_xor_u64, u64, 9, atomicXor(p, q))
ATOMIC(atomic_inc, u32, 0, atomicInc(p, 20))
ATOMIC(atomic_dec, u32, 3, atomicDec(p, 20))
ATOMIC(atomic_exch_cas, u32, 0, { u32 old = *p; u32 seen; do { seen = old; old = atomicCAS(p, seen, seen + 3); } while (old != seen); })
ATOMIC(atomic_cas_float_max, u32, 0, { u32 old = *p; while (__uint_as_float(old) < fabsf(g)) { const u32 seen = atomicCAS(p, old, __float_as_uint(fabsf(g))); if (seen == old) break; old = seen; } })
ATOMIC(atomic_half, unsigned short, 0x3c00, atomicAdd(reinterpret_cast<__half*>(p), __float2half(1.0f)))
ATOMIC(red_ptx, u32, 1, asm volatile("red.global.add.u32 [%0], %1;" ::"l"(p), "r"(a) : "memory"))
ATOMIC(atom_ptx_max, u32, 1, { u32 old; (void)old; asm volatile("atom.global.max.u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(a) : "memory"); })
KERNEL(shared_histogram, u32, 1, 256, __shared__ u32 bins[16]; if (t < 16) bins[t] = 0; __syncthreads(); atomicAdd(&bins[a % 16], 1u); __syncthreads(); out[i] = t < 16 ? bins[t] : 0;)

// ---- vector types and cache hints
KERNEL(float4_load, float, 1, 64, const float4 v = reinterpret_cast<const float4*>(in.g)[t]; reinterpret_cast<float4*>(out)[t] = make_float4(v.w, v.z, v.y, v.x);)
KERNEL(float2_ldg, float, 1, 128, const float2 v = __ldg(reinterpret_cast<const float2*>(in.g) + t); out[2 * t] = v.y; out[2 * t + 1] = v.x;)
KERNEL(int4_ldcs, u32, 1, 64, const uint4 v = __ldcs(reinterpret_cast<const uint4*>(in.a) + t); __stcs(reinterpret_cast<uint4*>(out) + t, make_uint4(v.y, v.x, v.w, v.z));)
KERNEL(uchar4_parts, u32, 4, 64, const uchar4 v = reinterpret_cast<const uchar4*>(in.a)[i]; out[i] = v.x + 2 * v.y + 3 * v.z + 4 * v.w;)
KERNEL(double2_load, double, 1, 128, const double2 v = reinterpret_cast<const double2*>(in.d)[t]; out[2 * t] = v.y; out[2 * t + 1] = v.x;)
KERNEL(half8_copy, float, 1, 256, __shared__ __align__(16) __half s[256]; s[t] = __float2half(g); __syncthreads(); const uint4 raw = reinterpret_cast<const uint4*>(s)[t / 8]; const __half* p = reinterpret_cast<const __half*>(&raw); out[i] = __half2float(p[7 - t % 8]);)

// ---- PTX
MAP(ptx_add, u32, [&] { u32 r; asm("add.u32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }())
MAP(ptx_mad_wide, u64, [&] { u64 r; asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(q)); return r; }())
MAP(ptx_lop3, u32, [&] { u32 r; asm("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }())
MAP(ptx_bfe, int, [&] { int r; asm("bfe.s32 %0, %1, 5, 9;" : "=r"(r) : "r"(static_cast<int>(a))); return r; }())
MAP(ptx_bfi, u32, [&] { u32 r; asm("bfi.b32 %0, %1, %2, 7, 11;" : "=r"(r) : "r"(a), "r"(b)); return r; }())
MAP(ptx_prmt_signs, u32, [&] { u32 r; asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }())
MAP(ptx_prmt, u32, [&] { u32 r; asm("prmt.b32 %0, %1, %2, 0x5410;" : "=r"(r) : "r"(a), "r"(b)); return r; }())
MAP(ptx_predicate, u32, [&] { u32 r = 1; asm("{\n .reg .pred p;\n setp.gt.u32 p, %1, %2;\n @p mov.u32 %0, 77;\n @!p add.u32 %0, %0, 5;\n}" : "+r"(r) : "r"(a), "r"(b)); return r; }())
MAP(ptx_selp, u32, [&] { u32 r; asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; selp.u32 %0, %1, %2, p; }" : "=r"(r) : "r"(a), "r"(b), "r"(static_cast<int>(c & 1))); return r; }())
MAP(ptx_max_nan, u32, [&] { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(f), "f"(g)); return __float_as_uint(r); }())
MAP(ptx_ex2, float, [&] { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(g)); return r; }())
MAP(ptx_rcp, float, [&] { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(fabsf(g) + 1.0f)); return r; }())
MAP(ptx_tanh, float, [&] { float r; asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(g)); return r; }())
MAP(ptx_tf32, u32, [&] { u32 r; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(g)); return r; }())
MAP(ptx_cvt_pack, u32, [&] { u32 r; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(g), "f"(h)); return r; }())
MAP(ptx_cvt_int, int, [&] { int r; asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r) : "f"(g)); return r; }())
MAP(ptx_mov_pack, u64, [&] { u64 r; asm("mov.b64 %0, {%1, %2};" : "=l"(r) : "r"(a), "r"(b)); return r; }())
MAP(ptx_ld_v4, u32, [&] { u32 x, y, z, w; asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(in.a + (i & ~3))); return x ^ (y << 1) ^ (z << 2) ^ (w << 3); }())
MAP(ptx_ld_offset, u32, [&] { u32 x; asm volatile("ld.global.u32 %0, [%1+4];" : "=r"(x) : "l"(in.a + (i & ~1))); return x; }())
KERNEL(ptx_shared, u32, 4, 64, __shared__ u32 s[64]; const u32 at = static_cast<u32>(__cvta_generic_to_shared(&s[t])); asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(a) : "memory"); __syncthreads(); u32 r; asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(static_cast<u32>(__cvta_generic_to_shared(&s[t ^ 5])))); out[i] = r;)
KERNEL(ptx_shfl, u32, 4, 64, u32 r; asm volatile("shfl.sync.bfly.b32 %0, %1, 3, 0x1f, 0xffffffff;" : "=r"(r) : "r"(a)); out[i] = r;)
KERNEL(ptx_vote, u32, 4, 64, u32 r; asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 0x80000000; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(r) : "r"(a)); out[i] = r;)
KERNEL(ptx_redux, u32, 4, 64, u32 r; asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(r) : "r"(a)); out[i] = r;)
KERNEL(ptx_cp_async, u32, 1, 64, __shared__ __align__(16) u32 s[256]; asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<u32>(__cvta_generic_to_shared(&s[4 * t]))), "l"(in.a + 4 * t) : "memory"); asm volatile("cp.async.commit_group;" ::: "memory"); asm volatile("cp.async.wait_group 0;" ::: "memory"); __syncthreads(); for (int j = 0; j < 4; ++j) out[4 * t + j] = s[255 - 4 * t - j];)
KERNEL(ptx_cp_async_zfill, u32, 1, 64, __shared__ __align__(16) u32 s[256]; asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<u32>(__cvta_generic_to_shared(&s[4 * t]))), "l"(in.a + 4 * t), "r"(t % 2 ? 16 : 8) : "memory"); asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads(); for (int j = 0; j < 4; ++j) out[4 * t + j] = s[4 * t + j];)

// ---- matrix instructions, on small integers so that every sum is exact
__device__ float small(u32 x) { return static_cast<float>(static_cast<int>(x % 9) - 4); }
__global__ void mma_m16n8k16(In in, float* out) {
    const int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    auto a_at = [&](int r, int c) { return small(in.a[(r * 16 + c) % N]); };
    auto b_at = [&](int r, int c) { return small(in.b[(r * 8 + c) % N]); };
    auto pack = [](float lo, float hi) {
        const __half2 v = __floats2half2_rn(lo, hi);
        return *reinterpret_cast<const u32*>(&v);
    };
    const u32 a0 = pack(a_at(g, 2 * t), a_at(g, 2 * t + 1)), a1 = pack(a_at(g + 8, 2 * t), a_at(g + 8, 2 * t + 1));
    const u32 a2 = pack(a_at(g, 2 * t + 8), a_at(g, 2 * t + 9)), a3 = pack(a_at(g + 8, 2 * t + 8), a_at(g + 8, 2 * t + 9));
    const u32 b0 = pack(b_at(2 * t, g), b_at(2 * t + 1, g)), b1 = pack(b_at(2 * t + 8, g), b_at(2 * t + 9, g));
    float d0 = 1, d1 = 2, d2 = 3, d3 = 4;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    out[g * 8 + 2 * t] = d0 - 1, out[g * 8 + 2 * t + 1] = d1 - 2;
    out[(g + 8) * 8 + 2 * t] = d2 - 3, out[(g + 8) * 8 + 2 * t + 1] = d3 - 4;
}
extern "C" int mma_m16n8k16_run(const In* in, void* out) {
    mma_m16n8k16<<<1, 32>>>(*in, static_cast<float*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void mma_tf32(In in, float* out) {
    const int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    auto a_at = [&](int r, int c) { return __float_as_uint(small(in.a[(r * 8 + c) % N])); };
    auto b_at = [&](int r, int c) { return __float_as_uint(small(in.b[(r * 8 + c) % N])); };
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a_at(g, t)), "r"(a_at(g + 8, t)), "r"(a_at(g, t + 4)), "r"(a_at(g + 8, t + 4)), "r"(b_at(t, g)), "r"(b_at(t + 4, g)));
    out[g * 8 + 2 * t] = d0, out[g * 8 + 2 * t + 1] = d1;
    out[(g + 8) * 8 + 2 * t] = d2, out[(g + 8) * 8 + 2 * t + 1] = d3;
}
extern "C" int mma_tf32_run(const In* in, void* out) {
    mma_tf32<<<1, 32>>>(*in, static_cast<float*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void mma_int8(In in, int* out) {
    const int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
    auto a_at = [&](int r, int c) { return in.a[(r * 8 + c / 4) % N]; };          // four bytes of a row
    auto b_at = [&](int c, int r) { return in.b[(c * 8 + r / 4) % N]; };          // four bytes of a column
    int d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3)
                 : "r"(a_at(g, 4 * t)), "r"(a_at(g + 8, 4 * t)), "r"(a_at(g, 4 * t + 16)), "r"(a_at(g + 8, 4 * t + 16)), "r"(b_at(g, 4 * t)), "r"(b_at(g, 4 * t + 16)));
    out[g * 8 + 2 * t] = d0, out[g * 8 + 2 * t + 1] = d1;
    out[(g + 8) * 8 + 2 * t] = d2, out[(g + 8) * 8 + 2 * t + 1] = d3;
}
extern "C" int mma_int8_run(const In* in, void* out) {
    mma_int8<<<1, 32>>>(*in, static_cast<int*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void ldmatrix_x4(In in, u32* out) {
    __shared__ __align__(16) unsigned short s[4 * 64];
    const int lane = threadIdx.x;
    for (int j = lane; j < 256; j += 32) s[j] = static_cast<unsigned short>(in.a[j]);
    __syncwarp();
    u32 r0, r1, r2, r3, r4, r5;
    const u32 at = static_cast<u32>(__cvta_generic_to_shared(&s[lane * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n" : "=r"(r4), "=r"(r5) : "r"(at));
    out[lane] = r0, out[lane + 32] = r1, out[lane + 64] = r2, out[lane + 96] = r3, out[lane + 128] = r4, out[lane + 160] = r5;
}
extern "C" int ldmatrix_x4_run(const In* in, void* out) {
    ldmatrix_x4<<<1, 32>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void wmma_half(In in, float* out) {
    using namespace nvcuda;
    __shared__ __align__(32) __half a[256], b[256];
    for (int j = threadIdx.x; j < 256; j += 32) a[j] = __float2half(small(in.a[j])), b[j] = __float2half(small(in.b[j]));
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 2.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    for (int j = 0; j < fc.num_elements; ++j) fc.x[j] *= 0.5f;
    wmma::store_matrix_sync(out, fc, 16, wmma::mem_row_major);
}
extern "C" int wmma_half_run(const In* in, void* out) {
    wmma_half<<<1, 32>>>(*in, static_cast<float*>(out));
    return static_cast<int>(cudaGetLastError());
}

// ---- cooperative groups
KERNEL(cg_tile_reduce, u32, 4, 64, auto tile = cg::tiled_partition<16>(cg::this_thread_block()); out[i] = cg::reduce(tile, a, cg::plus<u32>());)
KERNEL(cg_tile_max, int, 4, 64, auto tile = cg::tiled_partition<8>(cg::this_thread_block()); out[i] = cg::reduce(tile, static_cast<int>(a), cg::greater<int>());)
KERNEL(cg_tile_ranks, u32, 4, 64, auto tile = cg::tiled_partition<4>(cg::this_thread_block()); out[i] = tile.thread_rank() + 10 * tile.meta_group_rank() + 1000 * tile.size() + 10000 * tile.meta_group_size();)
KERNEL(cg_tile_shfl, u32, 4, 64, auto tile = cg::tiled_partition<8>(cg::this_thread_block()); out[i] = tile.shfl(a, 5) ^ tile.shfl_down(b, 2);)
KERNEL(cg_tile_ballot, u32, 4, 64, auto tile = cg::tiled_partition<16>(cg::this_thread_block()); out[i] = tile.ballot(a & 1) + (tile.any(a > 0xfff00000u) ? 1u << 20 : 0) + (tile.all(a > 5) ? 1u << 21 : 0);)
KERNEL(cg_scan, u32, 4, 64, auto tile = cg::tiled_partition<32>(cg::this_thread_block()); out[i] = cg::inclusive_scan(tile, a, cg::plus<u32>());)
KERNEL(cg_exclusive_scan, u32, 4, 64, auto tile = cg::tiled_partition<32>(cg::this_thread_block()); out[i] = cg::exclusive_scan(tile, a, cg::plus<u32>());)
KERNEL(cg_block, u32, 4, 64, auto block = cg::this_thread_block(); __shared__ u32 s[64]; s[block.thread_rank()] = a; block.sync(); out[i] = s[block.size() - 1 - t] + block.group_index().x;)
KERNEL(cg_coalesced, u32, 4, 64, u32 r = 0; if (lane % 3 == 0) { auto group = cg::coalesced_threads(); r = group.size() * 100 + group.thread_rank(); } out[i] = r;)
KERNEL(cg_labeled, u32, 4, 64, auto tile = cg::tiled_partition<32>(cg::this_thread_block()); auto group = cg::labeled_partition(tile, static_cast<int>(a % 3)); out[i] = cg::reduce(group, a, cg::plus<u32>());)
__global__ void cg_grid(In in, u32* out) {
    auto grid = cg::this_grid();
    const int i = static_cast<int>(grid.thread_rank());
    out[i] = in.a[i];
    grid.sync();
    const u32 other = out[N - 1 - i];
    grid.sync();
    out[i] = other + static_cast<u32>(grid.size());
}
extern "C" int cg_grid_run(const In* in, void* out) {
    In held = *in;
    u32* target = static_cast<u32*>(out);
    void* arguments[] = {&held, &target};
    return static_cast<int>(cudaLaunchCooperativeKernel((void*)cg_grid, dim3(4), dim3(64), arguments, 0, nullptr));
}

// ---- clusters and distributed shared memory
#define CLUSTER_KERNEL(NAME, BLOCKS_IN_EACH, T, ...)                                                    \
    __global__ void __cluster_dims__(BLOCKS_IN_EACH, 1, 1) NAME(In in, T* out) {                        \
        auto cluster = cg::this_cluster();                                                              \
        const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;                           \
        const u32 a = in.a[i];                                                                          \
        (void)t, (void)a;                                                                               \
        __VA_ARGS__                                                                                     \
    }                                                                                                   \
    extern "C" int NAME##_run(const In* in, void* out) {                                                \
        NAME<<<4, 64>>>(*in, static_cast<T*>(out));                                                     \
        return static_cast<int>(cudaGetLastError());                                                    \
    }
CLUSTER_KERNEL(cluster_ranks, 2, u32, out[i] = cluster.block_rank() + 10 * cluster.num_blocks() + 100 * cluster.thread_rank() + 100000 * cluster.dim_blocks().x;)
CLUSTER_KERNEL(cluster_exchange, 4, u32, __shared__ u32 s[64]; s[t] = a; cluster.sync(); out[i] = cluster.map_shared_rank(s, (cluster.block_rank() + 1) % 4)[63 - t]; cluster.sync();)
CLUSTER_KERNEL(cluster_split_barrier, 2, u32, __shared__ u32 s[64]; s[t] = a; auto token = cluster.barrier_arrive(); const u32 own = in.b[i]; cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token)); out[i] = own ^ *cluster.map_shared_rank(&s[t], cluster.block_rank() ^ 1); cluster.sync();)
CLUSTER_KERNEL(cluster_atomics, 4, u32, __shared__ u32 s; if (t == 0) s = 0; cluster.sync(); atomicAdd(cluster.map_shared_rank(&s, a % 4), 1u); cluster.sync(); out[i] = s;)
CLUSTER_KERNEL(cluster_query, 4, u32, __shared__ u32 s[64]; s[t] = a; cluster.sync(); out[i] = cluster.query_shared_rank(cluster.map_shared_rank(s, t % 4)) + 10 * cluster.query_shared_rank(&s[t]); cluster.sync();)
CLUSTER_KERNEL(cluster_ptx, 4, u32, __shared__ u32 s[64]; u32 rank; u32 remote; u32 got; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(static_cast<u32>(__cvta_generic_to_shared(&s[t]))), "r"((rank + 3) % 4)); cluster.sync(); asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(a) : "memory"); asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); const u32 own = s[t]; asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(got) : "r"(remote) : "memory"); out[i] = own + (got == a ? 1u : 0u); cluster.sync();)
__global__ void cluster_launch(In in, u32* out) {
    extern __shared__ u32 s[];
    auto cluster = cg::this_cluster();
    const u32 block = blockIdx.x + gridDim.x * blockIdx.y, t = threadIdx.x, i = block * 64 + t;
    s[t] = in.a[i];
    cluster.sync();
    const u32 rank = cluster.block_rank();
    out[i] = cluster.map_shared_rank(s, rank ^ 3)[t] + rank;
    cluster.sync();
}
extern "C" int cluster_launch_run(const In* in, void* out) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = attribute.val.clusterDim.y = 2;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(2, 2);
    launch.blockDim = dim3(64);
    launch.dynamicSmemBytes = 256;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    int clusters = 0;
    if (const cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, cluster_launch, &launch)) return static_cast<int>(error);
    if (clusters < 1) return 1;
    return static_cast<int>(cudaLaunchKernelEx(&launch, cluster_launch, *in, static_cast<u32*>(out)));
}

// ---- mbarriers and bulk copies
__device__ u32 shared_address(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ void bar_init(u64* bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(shared_address(bar)), "r"(count) : "memory"); }
__device__ void bar_arrive(u64* bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory"); }
__device__ void bar_arrive_expecting(u64* bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes) : "memory"); }
__device__ void bar_wait(u64* bar, u32 parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}\n" ::"r"(shared_address(bar)), "r"(parity) : "memory");
}
__device__ bool bar_test(u64* bar, u32 parity) {
    u32 done;
    asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(shared_address(bar)), "r"(parity) : "memory");
    return done != 0;
}
__device__ void bulk_in(void* to, const void* from, u32 bytes, u64* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(bar)) : "memory");
}
__device__ void bulk_out(void* to, const void* from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n\tcp.async.bulk.commit_group;" ::"l"(to), "r"(shared_address(from)), "r"(bytes) : "memory");
}
KERNEL(bulk_load, u32, 1, 64, __shared__ __align__(128) u32 s[256]; __shared__ u64 bar; if (t == 0) bar_init(&bar, 1); __syncthreads(); if (t == 0) { bar_arrive_expecting(&bar, 1024); bulk_in(s, in.a, 1024, &bar); } bar_wait(&bar, 0); for (int j = 0; j < 4; ++j) out[4 * t + j] = s[255 - 4 * t - j];)
// Two copies of one phase, whose bytes are expected before the arrivals; the waiting is one thread's, and a barrier's.
KERNEL(bulk_two_sources, u32, 1, 256, __shared__ __align__(16) u32 s[512]; __shared__ u64 bar; if (t == 0) bar_init(&bar, 256); __syncthreads(); if (t == 33) { asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(2048) : "memory"); bulk_in(s, in.a, 1024, &bar); bulk_in(s + 256, in.b, 1024, &bar); } bar_arrive(&bar); if (t == 40) while (!bar_test(&bar, 0)) {} __syncthreads(); out[i] = s[t] ^ s[511 - t];)
// A ring of two stages: a thread fills them, a warp sums 16 rows of 16; both halves of the protocol have barriers.
__global__ void bulk_ring(In in, u32* out) {
    extern __shared__ __align__(128) unsigned char memory[];
    u32* stages = reinterpret_cast<u32*>(memory);
    u64* full = reinterpret_cast<u64*>(memory + 2 * 64);
    u64* empty = full + 2;
    const int t = threadIdx.x;
    if (t == 0) {
        for (int s = 0; s < 2; ++s) bar_init(full + s, 1), bar_init(empty + s, 32);
    }
    __syncthreads();
    if (t == 0) {
        for (int row = 0; row < 16; ++row) {
            const int s = row % 2;
            bar_wait(empty + s, row / 2 % 2 ^ 1);
            bar_arrive_expecting(full + s, 64);
            bulk_in(stages + 16 * s, in.a + 16 * row, 64, full + s);
        }
    } else if (t >= 32) {
        u32 sum = 0;
        for (int row = 0; row < 16; ++row) {
            const int s = row % 2;
            bar_wait(full + s, row / 2 % 2);
            sum += stages[16 * s + t % 16];
            bar_arrive(empty + s);
        }
        out[t - 32] = sum;
    }
}
extern "C" int bulk_ring_run(const In* in, void* out) {
    bulk_ring<<<1, 64, 2 * 64 + 4 * 8>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
KERNEL(bulk_store, u32, 4, 64, __shared__ __align__(128) u32 s[64]; s[63 - t] = a + b; asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads(); if (t == 0) { bulk_out(out + i, s, 256); asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); })
// The buffer of one group is used again once it was read, while the other is still on its way.
KERNEL(bulk_store_groups, u32, 1, 32, __shared__ __align__(16) u32 s[2][32]; for (int k = 0; k < 8; ++k) { if (t == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); __syncwarp(); s[k % 2][t] = in.a[32 * k + t] + k; asm volatile("fence.proxy.async;" ::: "memory"); __syncwarp(); if (t == 0) bulk_out(out + 32 * k, s[k % 2], 128); } if (t == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");)
// What a store wrote is read again by its thread, after the wait.
KERNEL(bulk_round_trip, u32, 1, 32, __shared__ __align__(16) u32 s[32]; __shared__ u64 bar; s[t] = a; if (t == 0) bar_init(&bar, 1); asm volatile("fence.proxy.async;" ::: "memory"); __syncwarp(); if (t == 0) { bulk_out(out, s, 128); asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); bar_arrive_expecting(&bar, 64); bulk_in(s, out + 16, 64, &bar); } bar_wait(&bar, 0); out[32 + t] = s[t];)
KERNEL(bulk_cache_hint, u32, 4, 64, __shared__ __align__(16) u32 s[64]; __shared__ u64 bar; u64 policy; asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy)); if (t == 0) { asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(in.b + i), "r"(256) : "memory"); bar_init(&bar, 1); bar_arrive_expecting(&bar, 256); asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(s)), "l"(in.b + i), "r"(256), "r"(shared_address(&bar)), "l"(policy) : "memory"); } __syncthreads(); bar_wait(&bar, 0); out[i] = s[t ^ 1];)
// The state that an arrival returns names its phase.
KERNEL(mbarrier_state, u32, 1, 256, __shared__ u32 s[256]; __shared__ u64 bar; if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(256) : "memory"); __syncthreads(); u32 sum = 0; for (int k = 0; k < 3; ++k) { s[t] = a + k; for (int half = 0; half < 2; ++half) { u64 state; u32 done = 0; asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(shared_address(&bar)) : "memory"); while (!done) asm volatile("{\n.reg .pred complete;\nmbarrier.test_wait.shared.b64 complete, [%1], %2;\nselp.b32 %0, 1, 0, complete;\n}" : "=r"(done) : "r"(shared_address(&bar)), "l"(state) : "memory"); if (half == 0) sum += s[255 - t]; } } out[i] = sum;)
// One arrival may count for several; one that drops out is not waited for again.
KERNEL(mbarrier_counts, u32, 1, 64, __shared__ u32 s[64]; __shared__ u64 bar; if (t == 0) bar_init(&bar, 40); __syncthreads(); s[t] = a; __syncwarp(); if (t < 32) bar_arrive(&bar); if (t == 32) asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.release.cta.shared::cta.b64 state, [%0], %1;\n}" ::"r"(shared_address(&bar)), "r"(8) : "memory"); if (t < 40) { bar_wait(&bar, 0); const u32 v = s[63 - t]; if (t == 5) { asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];" ::"r"(shared_address(&bar)) : "memory"); } else { bar_arrive(&bar); bar_wait(&bar, 1); bar_arrive(&bar); bar_wait(&bar, 0); } out[i] = v; })
// Two warps hand an array to and fro, each with its own barrier.
KERNEL(mbarrier_ping_pong, u32, 1, 64, __shared__ u32 s[32]; __shared__ u64 bar[2]; if (t == 0) bar_init(bar, 32), bar_init(bar + 1, 32); if (t < 32) s[t] = a; __syncthreads(); for (int k = 0; k < 6; ++k) { if (t >= 32) { bar_wait(bar, k % 2); s[lane ^ 1] += k; bar_arrive(bar + 1); } else { bar_arrive(bar); bar_wait(bar + 1, k % 2); s[lane] *= 3; } } if (t < 32) out[t] = s[t];)
// cp.async copies that an mbarrier tracks, counted among its arrivals and not.
KERNEL(mbarrier_cp_async, u32, 1, 64, __shared__ __align__(16) u32 s[512]; __shared__ u64 bar; if (t == 0) bar_init(&bar, 64); __syncthreads(); asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(s + 4 * t)), "l"(in.a + 4 * t) : "memory"); asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory"); asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(s + 256 + 4 * t)), "l"(in.b + 4 * t) : "memory"); asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory"); bar_wait(&bar, 0); for (int j = 0; j < 4; ++j) out[4 * t + j] = s[255 - 4 * t - j] ^ s[256 + 4 * t + j];)
// The place of an mbarrier is used again, for another count.
KERNEL(mbarrier_again, u32, 1, 64, __shared__ __align__(16) u32 s[64]; __shared__ u64 bar; for (int k = 0; k < 4; ++k) { if (t == 0) { bar_init(&bar, k + 1); for (int j = 0; j < k; ++j) bar_arrive(&bar); bar_arrive_expecting(&bar, 256); bulk_in(s, in.a + 64 * k, 256, &bar); } __syncthreads(); bar_wait(&bar, 0); out[64 * k + t] = s[63 - t]; __syncthreads(); if (t == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory"); })
KERNEL(ptx_branch, u32, 4, 64, u32 r; asm volatile("{\n.reg .pred p;\n.reg .u32 x, y;\nmov.u32 x, %1;\nmov.u32 %0, 0;\nAGAIN: setp.eq.u32 p, x, 0;\n@p bra END;\nand.b32 y, x, 1;\nadd.u32 %0, %0, y;\nshr.u32 x, x, 1;\nbra.uni AGAIN;\nEND:\n}" : "=&r"(r) : "r"(a)); out[i] = r;)
KERNEL(ptx_elect, u32, 4, 64, u32 leader, elected; asm volatile("{\n.reg .pred p;\nelect.sync %0|p, %2;\nselp.u32 %1, 1, 0, p;\n}" : "=r"(leader), "=r"(elected) : "r"(0xffffffffu)); out[i] = __popc(__ballot_sync(0xffffffffu, elected)) + (__shfl_sync(0xffffffffu, elected, leader) ? 10 : 0);)
__global__ void __cluster_dims__(2, 1, 1) bulk_in_cluster(In in, u32* out) {
    __shared__ __align__(16) u32 s[64];
    __shared__ u64 bar;
    auto cluster = cg::this_cluster();
    const int t = threadIdx.x, i = blockIdx.x * 64 + t;
    if (t == 0) bar_init(&bar, 1);
    cluster.sync();
    if (t == 0) {
        u32 to, at;
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(s)), "r"(cluster.block_rank()));
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(&bar)), "r"(cluster.block_rank()));
        bar_arrive_expecting(&bar, 256);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(in.a + i), "r"(256), "r"(at) : "memory");
    }
    bar_wait(&bar, 0);
    cluster.sync();
    out[i] = cluster.map_shared_rank(s, cluster.block_rank() ^ 1)[t];
    cluster.sync();
}
extern "C" int bulk_in_cluster_run(const In* in, void* out) {
    bulk_in_cluster<<<4, 64>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}

// ---- launches: in macros, templates, lambdas, case labels, function pointers, and the API's own form
template <int ADD, typename T>
__global__ void add_constant(const T* from, T* to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] + ADD;
}
#define LAUNCH_ADD(ADD, FROM, TO)                  \
    do {                                           \
        add_constant<ADD><<<4, 64, 0>>>(FROM, TO); \
    } while (0)
extern "C" int launch_macro_run(const In* in, void* out) {
    LAUNCH_ADD(3, in->a, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
extern "C" int launch_case_run(const In* in, void* out) {
    switch (sizeof(In) % 2) {
        case 0:
            add_constant<7, u32>
                <<<dim3(4),
                   dim3(64)>>>(
                in->a,
                static_cast<u32*>(out));
            break;
        default: return 1;
    }
    return static_cast<int>(cudaGetLastError());
}
extern "C" int launch_lambda_run(const In* in, void* out) {
    auto go = [&](auto constant) { add_constant<decltype(constant)::value, u32><<<4, 64>>>(in->a, static_cast<u32*>(out)); };
    go(std::integral_constant<int, 11>());
    return static_cast<int>(cudaGetLastError());
}
extern "C" int launch_pointer_run(const In* in, void* out) {
    void (*kernel)(const u32*, u32*) = add_constant<13, u32>;
    kernel<<<4, 64>>>(in->a, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
extern "C" int launch_api_run(const In* in, void* out) {
    const u32* from = in->a;
    u32* to = static_cast<u32*>(out);
    void* arguments[] = {&from, &to};
    return static_cast<int>(cudaLaunchKernel((const void*)add_constant<17, u32>, dim3(4), dim3(64), arguments, 0, nullptr));
}
template <typename F>
__global__ void apply(const u32* from, u32* to, F f) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = f(from[i]);
}
extern "C" int launch_functor_run(const In* in, void* out) {
    const u32 factor = 5;
    apply<<<4, 64>>>(in->a, static_cast<u32*>(out), [factor] __device__(u32 x) { return x * factor; });
    return static_cast<int>(cudaGetLastError());
}
__global__ void optional_input(const u32* from, const u32* maybe, u32* to) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i] + (maybe ? maybe[i] : 1000u);
}
extern "C" int launch_null_run(const In* in, void* out) {
    optional_input<<<4, 64>>>(in->a, 0, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
__constant__ u32 table[4] = {1, 10, 100, 1000};
__device__ u32 offset = 3;
KERNEL(constant_memory, u32, 4, 64, out[i] = table[t % 4] + offset;)
__device__ u32 counter;
__global__ void last_block(In in, u32* out) {
    __shared__ bool last;
    const int t = threadIdx.x;
    u32 sum = in.a[blockIdx.x * 64 + t];
    for (int delta = 16; delta; delta /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, delta);
    if (t % 32 == 0) atomicAdd(&out[1 + blockIdx.x], sum);
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(&counter, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && t == 0) {
        __threadfence();
        u32 total = 0;
        for (u32 b = 0; b < gridDim.x; ++b) total += atomicAdd(&out[1 + b], 0u);
        out[0] = total;
        counter = 0;
    }
}
extern "C" int last_block_run(const In* in, void* out) {
    last_block<<<4, 64>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}
__global__ void spin_flag(In in, u32* out) {
    volatile u32* flag = out + 128;
    if (blockIdx.x == 1) {
        out[threadIdx.x] = in.a[threadIdx.x];
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) *flag = 1;
    } else {
        if (threadIdx.x == 0) {
            while (*flag == 0) {
            }
        }
        __syncthreads();
        __threadfence();
        out[64 + threadIdx.x] = out[63 - threadIdx.x];
    }
}
extern "C" int spin_flag_run(const In* in, void* out) {
    spin_flag<<<2, 64>>>(*in, static_cast<u32*>(out));
    return static_cast<int>(cudaGetLastError());
}

// ---- what the tests need around the checks
extern "C" int conformance_setup(const void* const* host, const size_t* bytes, int count, In* device) {
    const void** slots = reinterpret_cast<const void**>(device);
    for (int i = 0; i < count; ++i) {
        void* p = nullptr;
        if (const cudaError_t error = cudaMalloc(&p, bytes[i])) return static_cast<int>(error);
        if (const cudaError_t error = cudaMemcpy(p, host[i], bytes[i], cudaMemcpyHostToDevice)) return static_cast<int>(error);
        slots[i] = p;
    }
    return 0;
}
extern "C" int conformance_call(int (*run)(const In*, void*), const In* in, void* host, size_t bytes) {
    void* out = nullptr;
    int error = static_cast<int>(cudaMalloc(&out, bytes));
    if (!error) error = static_cast<int>(cudaMemset(out, 0, bytes));
    if (!error) error = run(in, out);
    if (!error) error = static_cast<int>(cudaDeviceSynchronize());
    if (!error) error = static_cast<int>(cudaMemcpy(host, out, bytes, cudaMemcpyDeviceToHost));
    cudaFree(out);
    return error;
}
