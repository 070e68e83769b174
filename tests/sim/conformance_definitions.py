"""What CUDA's operations are, in numpy from their definitions alone, and the inputs of the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
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
    return prmt(x, y, s & 0x7777)


def prmt(x: int, y: int, s: int) -> int:
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


def ping_pong() -> Array:
    s = a[:32].astype(object)
    for k in range(6):
        s = (s + k) * 3
    return np.array([v % 2**32 for v in s], U32)


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
