"""The answers of the conformance suite (kernels/conformance.cu), computed with numpy from the definitions alone.

    python conformance.py LIBRARY      runs every check on one library (the simulator's or nvcc's) and prints JSON

Each answer is (values, relative tolerance): 0 means every bit, which is what CUDA defines for that check.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np

N = 256
Array = np.ndarray[Any, Any]


def inputs() -> dict[str, Array]:
    """256 values of each kind: random ones with the special ones of their type in front."""
    r = np.random.default_rng(7)
    a, b, c = (r.integers(0, 1 << 32, N, dtype=np.uint64).astype(np.uint32) for _ in range(3))
    a[:6] = [0, 1, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00010000]
    f = (r.standard_normal(N) * 10.0 ** r.integers(-6, 7, N)).astype(np.float32)
    f[:10] = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65520.0, 1e-8, 2.5, -3.5]
    g = (r.standard_normal(N) * 2).astype(np.float32)
    g[:4] = [0.5, -0.5, 1.5, 2.5]
    h = (r.standard_normal(N) * 3).astype(np.float32)
    d, e = r.standard_normal(N) * 1e3, r.standard_normal(N)
    q = r.integers(0, 1 << 63, N, dtype=np.uint64) * np.uint64(2) + r.integers(0, 2, N, dtype=np.uint64)
    q[0] = 0
    return {"a": a, "b": b, "c": c, "f": f, "g": g, "h": h, "d": d, "e": e, "q": q}


INPUTS = inputs()
a, b, c, f, g, h, d, e, q = (INPUTS[k] for k in "abcfghdeq")
ai, bi, ci = (x.view(np.int32).astype(np.int64) for x in (a, b, c))
au, bu, cu = (x.astype(np.uint64) for x in (a, b, c))
U32, I32 = np.uint32, np.int32
i = np.arange(N)
lane, warp = i % 32, i // 32 * 32
M32 = np.uint64(0xFFFFFFFF)


def u32(x: Any) -> Array:
    return (
        np.asarray(x).astype(object) & 0xFFFFFFFF
        if np.asarray(x).dtype == object
        else np.asarray(x).astype(np.uint64) & M32
    ).astype(np.uint32)


def each(function: Callable[..., Any], *arrays: Array, dtype: Any = np.uint32) -> Array:
    return np.array([function(*(int(v) for v in row)) for row in zip(*arrays, strict=True)], dtype=object).astype(dtype)


def bits(n: int, width: int = 32) -> list[int]:
    return [n >> k & 1 for k in range(width)]


def byte_perm(x: int, y: int, s: int) -> int:
    both, out = y << 32 | x, 0
    for k in range(4):
        n = s >> 4 * k & 15
        v = both >> 8 * (n & 7) & 255
        out |= (255 * (v >> 7) if n & 8 else v) << 8 * k
    return out


def signed(n: int, width: int) -> int:
    n &= (1 << width) - 1
    return n - (1 << width) if n >> (width - 1) else n


def parts(n: int, width: int, sign: bool) -> list[int]:
    values = [n >> k & ((1 << width) - 1) for k in range(0, 32, width)]
    return [signed(v, width) for v in values] if sign else values


def joined(values: list[int], width: int) -> int:
    return sum((v & ((1 << width) - 1)) << k * width for k, v in enumerate(values))


def directed(exact: Any, mode: str, dtype: Any) -> Array:
    """Rounds long doubles to `dtype` in one direction: sums and products of two floats are exact in them or nearly."""
    with np.errstate(all="ignore"):
        near = exact.astype(dtype)
        wide = near.astype(np.longdouble)
        down = np.where(wide > exact, np.nextafter(near, dtype(-np.inf)), near)
        up = np.where(wide < exact, np.nextafter(near, dtype(np.inf)), near)
        out = {"d": down, "u": up, "z": np.where(exact < 0, up, down)}[mode]
        return np.where(np.isfinite(exact), out, near).astype(dtype)


def to_int(x: Array, rounded: Array, low: int, high: int, dtype: Any, nan: int = 0) -> Array:
    with np.errstate(all="ignore"):
        out = [
            nan if v != v else int(min(max(w, low), high))
            for v, w in zip(x.astype(float), rounded.astype(float), strict=True)
        ]
    return np.array(out).astype(dtype)


def half(x: Array) -> Array:
    with np.errstate(over="ignore"):
        out = x.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), out)


def half_directed(x: Array, mode: str) -> Array:
    near = x.astype(np.float16)
    down = np.where(near.astype(np.float64) > x, np.nextafter(near, np.float16(-np.inf)), near)
    up = np.where(near.astype(np.float64) < x, np.nextafter(near, np.float16(np.inf)), near)
    return np.asarray({"d": down, "u": up, "z": np.where(x < 0, up, down)}[mode], np.float16).view(np.uint16)


def bf(x: Array) -> Array:
    """float32 or float64 to the bits of bfloat16, to nearest even, in one step."""
    out = []
    for value in np.asarray(x, np.float64):
        m, ex = np.frexp(abs(value))
        scale = 2.0 ** max(int(ex) - 8, -133)
        rounded = np.float32(np.copysign(np.rint(abs(value) / scale) * scale, value))
        out.append(int(rounded.view(np.uint32)) >> 16)
        del m
    return np.array(out, np.uint16)


def bf_float(x: Array) -> Array:
    return (x.astype(np.uint32) << 16).view(np.float32)


def fp8(x: Array, ebits: int, mbits: int, bias: int, largest: float) -> tuple[Array, Array]:
    """The nearest representable number by looking at all of them; ties to the even code."""
    codes = np.arange(128)
    ex, m = codes >> mbits, codes & ((1 << mbits) - 1)
    values = np.where(ex == 0, m * 2.0 ** (1 - bias - mbits), (1 + m / (1 << mbits)) * 2.0 ** (ex - bias))
    codes, values = codes[values <= largest], values[values <= largest]
    out = []
    for v in np.asarray(x, np.float64):
        gap = np.abs(values - min(abs(v), largest))
        best = np.flatnonzero(gap == gap.min())
        code = int(codes[best[0]] if len(best) == 1 else next(codes[k] for k in best if codes[k] % 2 == 0))
        out.append(code | (128 if np.signbit(v) else 0))
    got = np.array(out, np.uint8)
    return got, (np.where(got & 128, -1.0, 1.0) * values[got & 127]).astype(np.float32)


def warps(x: Array, function: Callable[[Array], Any]) -> Array:
    return np.concatenate([np.broadcast_to(np.asarray(function(w)), 32) for w in x.reshape(-1, 32)])


def blocks(x: Array, function: Callable[[Array], Any], size: int = 64) -> Array:
    return np.concatenate([np.broadcast_to(np.asarray(function(w)), size) for w in x.reshape(-1, size)])


def shfl(x: Array, source: Array) -> Array:
    return x[warp + source]


def seg(width: int) -> Array:
    return lane // width * width


def down(delta: int, width: int) -> Array:
    return np.where(lane + delta > seg(width) + width - 1, lane, lane + delta)


def up(delta: int, width: int) -> Array:
    return np.where(lane - delta < seg(width), lane, lane - delta)


def xor(mask: int, width: int) -> Array:
    return np.where((lane ^ mask) > seg(width) + width - 1, lane, lane ^ mask)


def mask_of(flags: Array) -> int:
    return int(sum(1 << k for k, v in enumerate(flags) if v))


def last_bits(x: Array) -> Array:
    return x.view(np.uint32 if x.dtype.itemsize == 4 else np.uint64)


def places(init: int, dtype: Any, function: Callable[[int, list[int]], int], values: Array) -> Array:
    out = np.full(N, init, dtype=object)
    for p in range(8):
        out[p] = function(init, [int(v) for v in values[p::8]])
    width = np.dtype(dtype).itemsize * 8
    wrap = [signed(v, width) if np.issubdtype(dtype, np.signedinteger) else v % (1 << width) for v in out]
    return np.array(wrap, dtype=dtype)


def small(x: Array) -> Array:
    return (x % 9).astype(np.int64) - 4


def matrix(x: Array, rows: int, columns: int) -> Array:
    return small(x)[(np.arange(rows * columns) % N)].reshape(rows, columns)


def padded(x: Array, dtype: Any) -> Array:
    return np.concatenate([x.ravel(), np.zeros(N - x.size)]).astype(dtype)


def int8_matrix() -> Array:
    A = a[(np.arange(16)[:, None] * 8 + np.arange(8)) % N].copy().view(np.int8).reshape(16, 32).astype(np.int64)
    B = b[(np.arange(8)[:, None] * 8 + np.arange(8)) % N].copy().view(np.int8).reshape(8, 32).astype(np.int64)
    return A @ B.T


def ldmatrix() -> Array:
    s = (a & U32(0xFFFF)).reshape(4, 8, 8)
    g_, t_ = lane[:32] // 4, lane[:32] % 4
    rows = [s[m, g_, 2 * t_] | s[m, g_, 2 * t_ + 1] << 16 for m in range(4)]
    rows += [s[m, 2 * t_, g_] | s[m, 2 * t_ + 1, g_] << 16 for m in range(2)]
    return np.concatenate([*rows, np.zeros(64, U32)]).astype(U32)


def labeled() -> Array:
    out = np.zeros(N, np.uint64)
    for w in range(0, N, 32):
        for k in range(32):
            out[w + k] = sum(int(a[w + j]) for j in range(32) if a[w + j] % 3 == a[w + k] % 3)
    return u32(out)


def scanned(x: Array, exclusive: bool = False) -> Array:
    total = np.cumsum(x.astype(np.uint64).reshape(-1, 32), axis=1)
    return u32((total - x.astype(np.uint64).reshape(-1, 32) if exclusive else total).ravel())


def predicate(x: Array, y: Array) -> Array:
    return np.where(x > y, 77, 6).astype(U32)


def tf32(x: Array) -> Array:
    return ((x.view(np.uint32).astype(np.uint64) + 0x1000) & 0xFFFFE000).astype(np.uint32)


with np.errstate(all="ignore"):
    F64, G64, H64 = f.astype(np.longdouble), g.astype(np.longdouble), h.astype(np.longdouble)
    g16, h16, gb, hb = g.astype(np.float16), h.astype(np.float16), bf_float(bf(g)), bf_float(bf(h))
    ok = np.where((f > 1e4) | (f < -1e4) | np.isnan(f), np.float32(1), f)
    e4, e4_back = fp8(g, 4, 3, 7, 448.0)
    dims = np.array(
        [
            t % 4 + 10 * (t // 4 % 4) + 100 * (t // 16) + 1000 * (k % 2) + 10000 * (k // 2 % 2) + 100000 * (k // 4)
            for k in range(8)
            for t in range(32)
        ],
        U32,
    )
    fma_float = (f.astype(np.float64) * g.astype(np.float64)).astype(np.longdouble) + H64

    ANSWERS: dict[str, tuple[Array, float]] = {
        "clz": (each(lambda x: 32 - x.bit_length(), a, dtype=I32), 0),
        "clzll": (each(lambda x: 64 - x.bit_length(), q, dtype=I32), 0),
        "popc": (each(lambda x: x.bit_count(), a, dtype=I32), 0),
        "popcll": (each(lambda x: x.bit_count(), q, dtype=I32), 0),
        "ffs": (each(lambda x: (x & -x).bit_length(), a, dtype=I32), 0),
        "brev": (each(lambda x: sum(v << (31 - k) for k, v in enumerate(bits(x))), a), 0),
        "brevll": (each(lambda x: sum(v << (63 - k) for k, v in enumerate(bits(x, 64))), q, dtype=np.uint64), 0),
        "byte_perm": (each(byte_perm, a, b, c), 0),
        "funnel_l": (each(lambda x, y, s: ((y << 32 | x) << (s & 31)) >> 32 & 0xFFFFFFFF, a, b, c), 0),
        "funnel_r": (each(lambda x, y, s: (y << 32 | x) >> (s & 31) & 0xFFFFFFFF, a, b, c), 0),
        "funnel_lc": (each(lambda x, y, s: ((y << 32 | x) << min(s & 63, 32)) >> 32 & 0xFFFFFFFF, a, b, c), 0),
        "funnel_rc": (each(lambda x, y, s: (y << 32 | x) >> min(s & 63, 32) & 0xFFFFFFFF, a, b, c), 0),
        "mulhi": ((ai * bi >> 32).astype(I32), 0),
        "umulhi": (each(lambda x, y: x * y >> 32, a, b), 0),
        "umul64hi": (each(lambda x: x * (x ^ 0x1234567812345678) >> 64, q, dtype=np.uint64), 0),
        "mul24": (each(lambda x, y: signed(signed(x, 24) * signed(y, 24), 32), a, b, dtype=I32), 0),
        "umul24": (each(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF) & 0xFFFFFFFF, a, b), 0),
        "sad": (u32(np.abs(ai - bi) + cu.astype(np.int64)), 0),
        "usad": (u32(np.abs(au.astype(np.int64) - bu.astype(np.int64)) + cu.astype(np.int64)), 0),
        "hadd": ((ai + bi >> 1).astype(I32), 0),
        "rhadd": ((ai + bi + 1 >> 1).astype(I32), 0),
        "dp4a": (
            each(
                lambda x, y, z: signed(
                    z + sum(p * r for p, r in zip(parts(x, 8, True), parts(y, 8, True), strict=True)), 32
                ),
                a,
                b,
                c,
                dtype=I32,
            ),
            0,
        ),
        "udp4a": (
            each(
                lambda x, y, z: (
                    (z + sum(p * r for p, r in zip(parts(x, 8, False), parts(y, 8, False), strict=True))) & 0xFFFFFFFF
                ),
                a,
                b,
                c,
            ),
            0,
        ),
        "vadd4": (
            each(
                lambda x, y: joined([p + r for p, r in zip(parts(x, 8, False), parts(y, 8, False), strict=True)], 8),
                a,
                b,
            ),
            0,
        ),
        "vmaxs2": (
            each(
                lambda x, y: joined(
                    [max(p, r) for p, r in zip(parts(x, 16, True), parts(y, 16, True), strict=True)], 16
                ),
                a,
                b,
            ),
            0,
        ),
        "vabsdiffu4": (
            each(
                lambda x, y: joined(
                    [abs(p - r) for p, r in zip(parts(x, 8, False), parts(y, 8, False), strict=True)], 8
                ),
                a,
                b,
            ),
            0,
        ),
        "min_int": (np.minimum(ai, bi).astype(I32), 0),
        "max_unsigned": (np.maximum(a, b), 0),
        "max_mixed": (np.maximum(au, q), 0),
        "fadd_rz": (directed(F64 + G64, "z", np.float32), 0),
        "fadd_ru": (directed(F64 + G64, "u", np.float32), 0),
        "fadd_rd": (directed(F64 + G64, "d", np.float32), 0),
        "fmul_rz": (directed(F64 * G64, "z", np.float32), 0),
        "fmul_ru": (directed(F64 * G64, "u", np.float32), 0),
        "fdiv_rn": (f / g, 0),
        "fsqrt_rn": (np.sqrt(np.abs(f)), 0),
        "fsqrt_rd": (directed(np.sqrt(np.abs(F64)), "d", np.float32), 0),
        "frcp_rn": (np.float32(1) / f, 0),
        "fmaf_rn": (fma_float.astype(np.float32), 0),
        "fma_double": (
            (d.astype(np.longdouble) * e.astype(np.longdouble) + d.astype(np.longdouble)).astype(np.float64),
            1e-15,
        ),
        "dadd_rz": (directed(d.astype(np.longdouble) + e.astype(np.longdouble), "z", np.float64), 0),
        "dmul_ru": (d * e, 3e-16),
        "fmin_nan": (np.fmin(f, g), 0),
        "fmax_nan": (np.fmax(f, g), 0),
        "saturate": (np.where(np.isnan(f), 0, np.clip(f, 0, 1)).astype(np.float32), 0),
        "float2int_rn": (to_int(f, np.rint(f), -(2**31), 2**31 - 1, I32), 0),
        "float2int_rz": (to_int(f, np.trunc(f), -(2**31), 2**31 - 1, I32), 0),
        "float2int_ru": (to_int(f, np.ceil(f), -(2**31), 2**31 - 1, I32), 0),
        "float2int_rd": (to_int(f, np.floor(f), -(2**31), 2**31 - 1, I32), 0),
        "float2uint_rz": (to_int(f, np.trunc(f), 0, 2**32 - 1, U32), 0),
        "double2ll_rn": (np.rint(d).astype(np.int64), 0),
        "int2float_rn": (ai.astype(np.float32), 0),
        "uint2float_rn": (a.astype(np.float32), 0),
        "float_as_int": (f.view(I32), 0),
        "int_as_float": (a & U32(0x7F7FFFFF), 0),
        "hiloint": (((au & np.uint64(0x3FFFFFFF)) << np.uint64(32) | bu).view(np.float64), 0),
        "ceilf_": (np.ceil(f), 0),
        "rintf_": (np.rint(f), 0),
        "truncf_": (np.trunc(f), 0),
        "fmodf_": (np.fmod(f, np.float32(3.25)), 0),
        "copysignf_": (np.copysign(f, g), 0),
        "expf_": (np.exp(g.astype(np.float64)), 1e-6),
        "fast_exp": (np.exp(g.astype(np.float64)), 2e-6),
        "logf_": (np.log(np.abs(f.astype(np.float64)) + 0.5), 1e-4),
        "tanhf_": (np.tanh(g.astype(np.float64)), 1e-6),
        "erff_": (np.array([erf(v) for v in g]), 1e-6),
        "rsqrtf_": (1 / np.sqrt(np.abs(g.astype(np.float64)) + 0.5), 1e-6),
        "powf_": ((np.abs(g) + np.float32(0.1)).astype(np.float64) ** np.float64(np.float32(1.7)), 2e-6),
        "sinpif_": (np.sin(np.pi * np.fmod(g.astype(np.float64), 2)), 1e-5),
        "normcdff_": (np.array([0.5 * (1 + erf(v / np.sqrt(2))) for v in g.astype(np.float64)]), 1e-4),
        "erfinvf_": (g / np.float32(9), -1),  # answered by its own property below
        "cbrtf_": (np.cbrt(g.astype(np.float64)), 1e-6),
        "log1p_": (np.log1p(np.abs(d)), 1e-14),
        "fdividef_": (g.astype(np.float64) / (np.abs(h) + np.float32(1)), 1e-6),
        "half_from_float": (half(f), 0),
        "half_rz": (half_directed(g, "z"), 0),
        "half_ru": (half_directed(g, "u"), 0),
        "half_rd": (half_directed(g, "d"), 0),
        "half_to_float": ((a & U32(0x7BFF)).astype(np.uint16).view(np.float16).astype(np.float32), 0),
        "half_add": ((g16.astype(np.float32) + h16.astype(np.float32)).astype(np.float16).view(np.uint16), 0),
        "half_mul": ((g16.astype(np.float32) * h16.astype(np.float32)).astype(np.float16).view(np.uint16), 0),
        "half_div": (
            (g16.astype(np.float64) / (np.abs(h) + np.float32(1)).astype(np.float16))
            .astype(np.float16)
            .view(np.uint16),
            0,
        ),
        "half_fma": ((g16.astype(np.float64) * h16 + g16).astype(np.float16).view(np.uint16), 0),
        "half_max": (np.maximum(g16, h16).view(np.uint16), 0),
        "half_less": ((g16 < h16).astype(I32), 0),
        "half_int": (np.trunc((g * np.float32(100)).astype(np.float16).astype(np.float32)).astype(I32), 0),
        "half_sqrt": (np.sqrt(np.abs(g16).astype(np.float32)).astype(np.float16).view(np.uint16), 0),
        "half2_fma": (
            (ok.astype(np.float16).astype(np.float64) * h16 + g16).astype(np.float16).view(np.uint16).astype(U32)
            | (g16.astype(np.float64) * g16 + h16).astype(np.float16).view(np.uint16).astype(U32) << 16,
            0,
        ),
        "half2_float2": (h16.astype(np.float32), 0),
        "bf16_from_float": (bf(g), 0),
        "bf16_rz": ((g.view(np.uint32) >> 16).astype(np.uint16), 0),
        "bf16_to_float": (bf_float(a & U32(0x7F7F)), 0),
        "bf16_add": (bf(gb.astype(np.float64) + hb), 0),
        "bf16_mul": (bf(gb.astype(np.float64) * hb), 0),
        "bf16_fma": (bf(gb.astype(np.float64) * hb + gb), 0),
        "bf162_low": (gb, 0),
        "fp8_e4m3": (e4, 0),
        "fp8_e5m2": (fp8(g, 5, 2, 15, 57344.0)[0], 0),
        "fp8_e4m3_back": (e4_back, 0),
        "shfl_idx": (shfl(a, (lane * 7 + 3) & 31), 0),
        "shfl_idx_8": (shfl(a, seg(8) + (lane + 3) % 8), 0),
        "shfl_up": (shfl(a, up(3, 32)), 0),
        "shfl_up_16": (shfl(a, up(5, 16)), 0),
        "shfl_down": (shfl(a, down(7, 32)), 0),
        "shfl_down_8": (shfl(a, down(2, 8)), 0),
        "shfl_xor": (shfl(a, lane ^ 13), 0),
        "shfl_xor_16": (shfl(a, xor(9, 16)), 0),
        "shfl_double": (shfl(d, lane ^ 1), 0),
        "shfl_u64": (shfl(q, down(1, 32)), 0),
        "shfl_half": (shfl(g16.astype(np.float32), lane ^ 4), 0),
        "shfl_subset": (np.where(lane < 12, shfl(a, np.where(lane < 12, lane ^ 2, lane)), 0).astype(U32), 0),
        "ballot": (warps(a, lambda w: mask_of(w & 1)).astype(U32), 0),
        "ballot_subset": (np.where(lane % 2, warps(a, lambda w: mask_of(w & 2) & 0xAAAAAAAA), 0).astype(U32), 0),
        "any_all": (warps(a, lambda w: int((w > 0xF0000000).any()) + 2 * int((w > 0x04000000).all())).astype(U32), 0),
        "match_any": (np.concatenate([[mask_of(w % 5 == v % 5) for v in w] for w in a.reshape(-1, 32)]).astype(U32), 0),
        "match_all": (np.where(i // 64 % 2, 7, 0xFFFFFFFE).astype(U32), 0),
        "reduce_add": (u32(warps(au, lambda w: w.sum())), 0),
        "reduce_min": (warps(ai, lambda w: w.min()).astype(I32), 0),
        "reduce_xor": (warps(a, np.bitwise_xor.reduce), 0),
        "activemask_full": (np.full(N, 0xFFFFFFFF, U32), 0),
        "warp_prefix": (scanned(a), 0),
        "divergent_shuffles": (shfl(a, np.where(lane < 16, lane ^ 1, lane ^ 2)), 0),
        "sync_count": (blocks(a & 1, lambda w: w.sum()).astype(I32), 0),
        "sync_and_or": (blocks(a, lambda w: int((w > 1000).all()) + 2 * int((w > 0xFFFFFF00).any())).astype(I32), 0),
        "shared_reverse": (a.reshape(-1, 64)[:, ::-1].ravel(), 0),
        "shared_two": ((np.roll(a.reshape(-1, 64), -1, axis=1) ^ b.reshape(-1, 64)[:, ::-1]).ravel(), 0),
        "shared_2d": (a.reshape(16, 16).T.ravel(), 0),
        "shared_struct": (u32(au[i ^ 1] + (g[i ^ 1] > 0)), 0),
        "block_sum": (u32(blocks(au, lambda w: w.sum())), 0),
        "named_barrier": (np.concatenate([a[127::-1], a[255:127:-1]]), 0),
        "special_registers": (u32(lane + 100 * (i // 64) + (((1 << lane) - 1) & 0xFF00)), 0),
        "dynamic_shared": (u32(au.reshape(-1, 64)[:, ::-1].ravel() + 5 + (i % 64 + 1) % 64), 0),
        "large_shared": (a.reshape(-1, 64)[:, ::-1].ravel(), 0),
        "dims_3d": (dims, 0),
        "atomic_add_int": (places(5, I32, lambda s, v: s + sum(v), ai), 0),
        "atomic_add_unsigned": (places(5, U32, lambda s, v: s + sum(v), a), 0),
        "atomic_add_u64": (places(5, np.uint64, lambda s, v: s + sum(v), q), 0),
        "atomic_add_float": (places(5, np.int64, lambda s, v: s + sum(v), a % 1000).astype(np.float32), 0),
        "atomic_add_double": (places(5, np.int64, lambda s, v: s + sum(v), a % 100000).astype(np.float64), 0),
        "atomic_sub_int": (places(5, I32, lambda s, v: s - sum(v), ai), 0),
        "atomic_min_int": (places(5, I32, lambda s, v: min(s, *v), ai), 0),
        "atomic_max_unsigned": (places(5, U32, lambda s, v: max(s, *v), a), 0),
        "atomic_max_s64": (places(5, np.int64, lambda s, v: max(s, *v), q.view(np.int64)), 0),
        "atomic_min_u64": (places(2**64 - 1, np.uint64, lambda s, v: min(s, *v), q), 0),
        "atomic_and": (
            places(0xFFFFFFFF, U32, lambda s, v: int(np.bitwise_and.reduce([s, *(x | 0xFF00FF00 for x in v)])), a),
            0,
        ),
        "atomic_or": (places(0, U32, lambda s, v: int(np.bitwise_or.reduce([x & 0x11111111 for x in v])), a), 0),
        "atomic_xor": (places(9, U32, lambda s, v: s ^ int(np.bitwise_xor.reduce(v)), a), 0),
        "atomic_xor_u64": (
            places(9, np.uint64, lambda s, v: s ^ int(np.bitwise_xor.reduce(np.array(v, np.uint64))), q),
            0,
        ),
        "atomic_inc": (places(0, U32, lambda s, v: len(v) % 21, a), 0),
        "atomic_dec": (places(3, U32, lambda s, v: (3 - len(v)) % 21, a), 0),
        "atomic_exch_cas": (places(0, U32, lambda s, v: 3 * len(v), a), 0),
        "atomic_cas_float_max": (places(0, U32, lambda s, v: max(v), np.abs(g).view(np.uint32)), 0),
        "atomic_half": (np.concatenate([np.full(8, 33.0), np.full(N - 8, 1.0)]).astype(np.float16).view(np.uint16), 0),
        "red_ptx": (places(1, U32, lambda s, v: s + sum(v), a), 0),
        "atom_ptx_max": (places(1, U32, lambda s, v: max(s, *v), a), 0),
        "shared_histogram": (np.concatenate([np.bincount(a % 16, minlength=16), np.zeros(240)]).astype(U32), 0),
        "float4_load": (g.reshape(-1, 4)[:, ::-1].ravel(), 0),
        "float2_ldg": (g.reshape(-1, 2)[:, ::-1].ravel(), 0),
        "int4_ldcs": (a.reshape(-1, 4)[:, [1, 0, 3, 2]].ravel(), 0),
        "uchar4_parts": (
            (a.view(np.uint8).reshape(-1, 4).astype(U32) * np.array([1, 2, 3, 4], U32)).sum(axis=1).astype(U32),
            0,
        ),
        "double2_load": (d.reshape(-1, 2)[:, ::-1].ravel(), 0),
        "half8_copy": (g16.reshape(-1, 8)[:, ::-1].ravel().astype(np.float32), 0),
        "ptx_add": (u32(au + bu), 0),
        "ptx_mad_wide": (each(lambda x, y, z: (x * y + z) % 2**64, a, b, q, dtype=np.uint64), 0),
        "ptx_lop3": (a & b | c, 0),
        "ptx_bfe": (each(lambda x: signed(x >> 5, 9), a, dtype=I32), 0),
        "ptx_bfi": (each(lambda x, y: y & ~(0x7FF << 7) | (x & 0x7FF) << 7, a, b), 0),
        "ptx_prmt": (a & U32(0xFFFF) | b << 16, 0),
        "ptx_predicate": (predicate(a, b), 0),
        "ptx_selp": (np.where(c & 1, a, b), 0),
        "ptx_max_nan": (np.where(np.isnan(f), U32(0x7FFFFFFF), np.fmax(f, g).view(np.uint32)), 0),
        "ptx_ex2": (2.0 ** g.astype(np.float64), 1e-6),
        "ptx_rcp": (1 / (np.abs(g) + np.float32(1)).astype(np.float64), 1e-6),
        "ptx_tanh": (np.tanh(g.astype(np.float64)), 1e-3),
        "ptx_tf32": (tf32(g), -2),  # the low 13 bits are not defined
        "ptx_cvt_pack": (bf(h).astype(U32) | bf(g).astype(U32) << 16, 0),
        "ptx_cvt_int": (np.rint(g).astype(I32), 0),
        "ptx_mov_pack": (au | bu << np.uint64(32), 0),
        "ptx_ld_v4": (np.repeat(a[0::4] ^ a[1::4] << 1 ^ a[2::4] << 2 ^ a[3::4] << 3, 4), 0),
        "ptx_ld_offset": (np.repeat(a[1::2], 2), 0),
        "ptx_shared": (a[i ^ 5], 0),
        "ptx_shfl": (shfl(a, lane ^ 3), 0),
        "ptx_vote": (warps(a, lambda w: mask_of(w < 0x80000000)).astype(U32), 0),
        "ptx_redux": (warps(a, lambda w: w.max()), 0),
        "ptx_cp_async": (a[::-1], 0),
        "ptx_cp_async_zfill": (np.where((i // 4 % 2 == 1) | (i % 4 < 2), a, 0).astype(U32), 0),
        "mma_m16n8k16": (padded(matrix(a, 16, 16) @ matrix(b, 16, 8), np.float32), 0),
        "mma_tf32": (padded(matrix(a, 16, 8) @ matrix(b, 8, 8), np.float32), 0),
        "mma_int8": (padded(int8_matrix(), I32), 0),
        "ldmatrix_x4": (ldmatrix(), 0),
        "wmma_half": (((matrix(a, 16, 16) @ matrix(b, 16, 16).T + 2) * 0.5).ravel().astype(np.float32), 0),
        "cg_tile_reduce": (u32(np.repeat(au.reshape(-1, 16).sum(axis=1), 16)), 0),
        "cg_tile_max": (np.repeat(ai.reshape(-1, 8).max(axis=1), 8).astype(I32), 0),
        "cg_tile_ranks": (u32(i % 4 + 10 * (i % 64 // 4) + 4000 + 160000), 0),
        "cg_tile_shfl": (a[i // 8 * 8 + 5] ^ b[i // 8 * 8 + np.where(i % 8 + 2 > 7, i % 8, i % 8 + 2)], 0),
        "cg_tile_ballot": (
            np.repeat(
                [
                    mask_of(w & 1) + (int((w > 0xFFF00000).any()) << 20) + (int((w > 5).all()) << 21)
                    for w in a.reshape(-1, 16)
                ],
                16,
            ).astype(U32),
            0,
        ),
        "cg_scan": (scanned(a), 0),
        "cg_exclusive_scan": (scanned(a, exclusive=True), 0),
        "cg_block": (u32(au.reshape(-1, 64)[:, ::-1].ravel() + i // 64), 0),
        "cg_coalesced": (np.where(lane % 3 == 0, 1100 + lane // 3, 0).astype(U32), 0),
        "cg_labeled": (labeled(), 0),
        "cg_grid": (u32(au[::-1] + 256), 0),
        "launch_macro": (u32(au + 3), 0),
        "launch_case": (u32(au + 7), 0),
        "launch_lambda": (u32(au + 11), 0),
        "launch_pointer": (u32(au + 13), 0),
        "launch_api": (u32(au + 17), 0),
        "launch_functor": (u32(au * 5), 0),
        "launch_null": (u32(au + 1000), 0),
        "constant_memory": (np.array([4, 13, 103, 1003], U32)[i % 4], 0),
        "last_block": (
            u32(
                np.concatenate([[au.sum()], au.reshape(4, 64).sum(axis=1), np.zeros(N - 5)])
                .astype(object)
                .astype(np.uint64)
            ),
            0,
        ),
        "spin_flag": (np.concatenate([a[:64], a[63::-1], [1], np.zeros(N - 129)]).astype(U32), 0),
    }


def disagreement(name: str, got: Array) -> str:
    """What is wrong with `got`, in words; "" when it is right."""
    want, tolerance = ANSWERS[name]
    if name == "erfinvf_":
        back = np.array([erf(v) for v in got.astype(np.float64)])
        wrong = np.abs(back - want) > 1e-6
    elif tolerance == -2:
        wrong = (got & U32(0xFFFFE000)) != want
    elif tolerance:
        with np.errstate(invalid="ignore"):
            wrong = np.abs(got.astype(np.float64) - want) > tolerance * np.maximum(
                np.abs(want.astype(np.float64)), 1e-3
            )
        wrong &= ~((got == want) | (np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))))
    elif want.dtype.kind == "f":
        # NaNs have no defined payload.
        wrong = (got.view(f"u{got.itemsize}") != want.view(f"u{want.itemsize}")) & ~(np.isnan(got) & np.isnan(want))
    else:
        wrong = got != want
    if not wrong.any():
        return ""
    k = int(np.flatnonzero(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} wrong, first at {k}: got {got[k]!r}, want {want[k]!r}"


def run(library: ctypes.CDLL, names: list[str]) -> dict[str, str]:
    """name -> "" or what is wrong."""
    arrays = [np.ascontiguousarray(INPUTS[k]) for k in "abcfghdeq"]
    pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))
    sizes = (ctypes.c_size_t * len(arrays))(*(x.nbytes for x in arrays))
    device = (ctypes.c_void_p * len(arrays))()
    error = library.conformance_setup(pointers, sizes, len(arrays), device)
    if error:
        raise SystemExit(f"CUDA error {error} in the set-up")
    results = {}
    for name in names:
        want, tolerance = ANSWERS[name]
        dtype = (
            np.dtype(np.float32)
            if tolerance and want.dtype == np.float64 and name not in ("fma_double", "dmul_ru", "log1p_")
            else want.dtype
        )
        got = np.zeros(N, dtype)
        function = ctypes.cast(getattr(library, f"{name}_run"), ctypes.c_void_p)
        error = library.conformance_call(
            function, device, got.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(got.nbytes)
        )
        results[name] = f"CUDA error {error}" if error else disagreement(name, got)
    return results


if __name__ == "__main__":
    print(json.dumps(run(ctypes.CDLL(sys.argv[1]), sys.argv[2:] or list(ANSWERS))))
