"""Measures the native core on the GPU here: comparison, poison, flush, timer, and the arena between two processes.

    python benchmarks/native_core.py [--json FILE]

Needs an NVIDIA GPU with some 20 GiB free and takes under a minute. As root the second process of the arena's test drops
to an unprivileged user in mount, network, IPC and UTS namespaces of its own, as the judge's runner does.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

from utils.native import device as devices
from utils.native import library
from utils.native.arena import Arena
from utils.native.compare import compare
from utils.native.poison import count_poison, poison
from utils.native.summary import summarise
from utils.native.timer import DeviceTimer
from utils.present import record
from utils.present.console import table
from utils.present.outcome import YES, CannotTell, run

GPU = torch.device("cuda:0")
GIB = 1 << 30
NAMESPACES = 0x00020000 | 0x40000000 | 0x08000000 | 0x04000000  # CLONE_NEWNS | NEWNET | NEWIPC | NEWUTS
NOBODY = 65534


def best_ms(timer: DeviceTimer, function: Callable[[], Any], repeats: int = 5) -> float:
    function()
    return min(timer.time(function)[1] for _ in range(repeats))


def normal(count: int, dtype: torch.dtype) -> torch.Tensor:
    """`count` elements without a temporary beside them."""
    if dtype.is_floating_point or dtype.is_complex:
        if dtype.itemsize == 1:
            return torch.randn(count, device=GPU, dtype=torch.float16).to(dtype)
        return torch.randn(count, device=GPU, dtype=dtype)
    return torch.randint(0, 100, (count,), device=GPU, dtype=dtype)


def comparisons(timer: DeviceTimer, copy: float) -> list[dict[str, Any]]:
    rows = []

    def measure(name: str, expected: torch.Tensor, actual: torch.Tensor, nbytes: int, **options: Any) -> None:
        options = {"atol": 1e-2, "rtol": 1e-2, "strict": False, "locate": False, **options}
        outcome = compare(expected, actual, **options)
        ms = best_ms(timer, lambda: compare(expected, actual, **options))
        rate = nbytes / ms * 1e3
        rows.append(
            {
                "case": name,
                "elements": expected.numel(),
                "bytes": nbytes,
                "ms": ms,
                "bytes_per_second": rate,
                "share_of_copy": rate / copy,
                "failing": outcome.failing,
            }
        )

    expected = normal(GIB, torch.float32)
    actual = expected.clone()
    measure("fp32 4 GiB, equal", expected, actual, 8 * GIB)
    actual.mul_(1 + 1e-3)
    measure("fp32 4 GiB, small errors", expected, actual, 8 * GIB)
    actual.add_(torch.randn(1 << 20, device=GPU).mul_(1e-4).repeat(1 << 10))
    measure("fp32 4 GiB, random errors", expected, actual, 8 * GIB, poison_seed=1)
    measure("fp32 4 GiB against a zero expanded", expected, torch.zeros((), device=GPU).expand(GIB), 4 * GIB)
    planted = expected.clone()
    planted[-1] += 1
    found = compare(expected, planted, 1e-2, 1e-2)
    if found.failing != 1 or found.worst_index != (GIB - 1,):
        raise CannotTell(f"the comparison did not find the planted error: {found}")
    e, a = expected[: GIB // 4], actual[: GIB // 4]
    measure("fp32 1 GiB, misaligned", e[1:], a[1:], 2 * GIB - 8)
    e, a = e.view(64, 2048, 2048), a.view(64, 2048, 2048)
    measure("fp32 1 GiB, one side transposed", e, a.transpose(1, 2), 2 * GIB)
    measure("fp32 1 GiB, both transposed", e.transpose(1, 2), a.transpose(1, 2), 2 * GIB)
    channel = torch.randn(64, 1, 2048, device=GPU).expand(64, 2048, 2048)
    measure("fp32 1 GiB against one value a channel", e, channel, GIB)
    measure("fp32 1 GiB, locating the failures too", e, channel, 2 * GIB, locate=True)
    del e, a, channel, expected, actual, planted
    for dtype in (
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.float8_e4m3fn,
        torch.complex64,
        torch.int32,
        torch.int64,
    ):
        expected = normal(GIB // dtype.itemsize, dtype)
        actual = expected.clone()
        if dtype.is_complex or (dtype.is_floating_point and dtype.itemsize > 1):
            actual.mul_(1 + 1e-3)
        measure(f"{str(dtype)[6:]} 1 GiB", expected, actual, 2 * GIB)
        del expected, actual
    expected = normal(GIB // 8, torch.float64)
    measure("fp64 expected, fp32 actual", expected, expected.float(), GIB + GIB // 2)
    count = 2**31 + 8
    expected = torch.randint(0, 255, (count,), device=GPU, dtype=torch.uint8)
    measure("uint8 2^31 + 8 elements", expected, expected.clone(), 2 * count)
    small = normal(1 << 16, torch.float32)
    measure("fp32 256 KiB (latency)", small, small.clone(), 1 << 19)
    return rows


def fills(timer: DeviceTimer, copy: float) -> list[dict[str, Any]]:
    tensor = torch.empty(GIB, dtype=torch.float32, device=GPU)
    rows = []
    for name, target in (("poison 4 GiB", tensor), ("poison 4 GiB, misaligned by 4 bytes", tensor[1:])):
        ms = best_ms(timer, lambda target=target: poison(target, 7))  # type: ignore[misc]
        rows.append({"case": name, "ms": ms, "bytes_per_second": 4 * GIB / ms * 1e3})
    poison(tensor, 8)
    if count_poison(tensor, 8) != GIB:
        raise CannotTell("the poison is not what was laid")
    rows.append({"case": "count poison 4 GiB", "ms": (ms := best_ms(timer, lambda: count_poison(tensor, 8), 2))})
    rows[-1]["bytes_per_second"] = 4 * GIB / ms * 1e3
    rows.append({"case": "summary 4 GiB", "ms": (ms := best_ms(timer, lambda: summarise(tensor), 2))})
    rows[-1]["bytes_per_second"] = 4 * GIB / ms * 1e3
    for row in rows:
        row["share_of_copy"] = row["bytes_per_second"] / copy
    return rows


class AccessPolicyWindow(ctypes.Structure):
    """cudaAccessPolicyWindow, padded to the size of cudaLaunchAttributeValue."""

    _fields_ = [
        ("base", ctypes.c_void_p),
        ("nbytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("padding", ctypes.c_char * 36),
    ]


def persist(tensor: torch.Tensor) -> bool:
    """Asks for the tensor to stay in L2, as a solution that wants to outlive the flush would."""
    with open("/proc/self/maps") as maps:
        runtime = ctypes.CDLL(next(line.split()[-1] for line in maps if "libcudart.so" in line))
    limit = devices.facts(0).persisting_l2_bytes
    window = AccessPolicyWindow(tensor.data_ptr(), tensor.numel() * tensor.itemsize, 1.0, 2, 1)
    stream = ctypes.c_void_p(torch.cuda.current_stream(GPU).cuda_stream)
    return (
        runtime.cudaDeviceSetLimit(6, ctypes.c_size_t(limit)) == 0
        and runtime.cudaStreamSetAttribute(stream, 1, ctypes.byref(window)) == 0
    )


def evict_last_reader() -> Callable[[torch.Tensor], torch.Tensor] | None:
    """A kernel that reads with the hint "evict last"; None where there is no Triton."""
    try:
        import triton
        import triton.language as tl
    except ImportError:
        return None
    globals()["tl"] = tl

    @triton.jit
    def read(source, sums, block: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(sums + tl.program_id(0), tl.sum(tl.load(source + at, eviction_policy="evict_last")))

    def call(tensor: torch.Tensor) -> torch.Tensor:
        sums = torch.empty(tensor.numel() // 4096, device=GPU)
        read[(tensor.numel() // 4096,)](tensor, sums, 4096)
        return sums

    return call


def flushing(timer: DeviceTimer) -> dict[str, Any]:
    """Time of a flush, and of reading 24 MiB after nothing, after an ordinary sweep and after the flush; with ordinary
    reads, with reads that ask to be evicted last, and with a persisting window."""
    facts = devices.facts(0)
    results: dict[str, Any] = {"l2_bytes": facts.l2_bytes, "persisting_l2_bytes": facts.persisting_l2_bytes}
    results["flush_ms"] = best_ms(timer, timer.flush_l2, 20)
    # On a stream of its own, whose attributes die with it.
    with torch.cuda.stream(torch.cuda.Stream(GPU)):
        tensor = torch.ones(6 << 20, device=GPU)
        sweep = torch.empty(2 * facts.l2_bytes // 4, device=GPU)

        def read_ms(
            prepare: Callable[[], Any], read: Callable[[torch.Tensor], Any], between: Callable[[], Any]
        ) -> float:
            times = []
            for _ in range(30):
                prepare()
                read(tensor)
                between()
                timer.delay_us(50)
                times.append(timer.time(lambda: read(tensor))[1])
            return statistics.median(times)

        def add_up(x: torch.Tensor) -> torch.Tensor:
            return x.sum()

        cases: dict[str, tuple[Callable[[], Any], Callable[[torch.Tensor], Any] | None]] = {
            "ordinary": (lambda: None, add_up),
            "evict_last": (lambda: None, evict_last_reader()),
            "persisting": (lambda: persist(tensor), add_up),
        }
        for name, (prepare, read) in cases.items():
            if read is None or (name == "persisting" and not persist(tensor)):
                results[name] = None
                continue
            results[name] = {
                "warm_ms": read_ms(prepare, read, lambda: None),
                "after_sweep_ms": read_ms(prepare, read, lambda: sweep.fill_(1)),
                "after_flush_ms": read_ms(prepare, read, timer.flush_l2),
            }
        timer.flush_l2()
    return results


def clocks(timer: DeviceTimer) -> dict[str, Any]:
    """Our events beside torch's around the same work, and delays beside what was asked for."""
    results: dict[str, Any] = {}
    for size in (256, 2048, 8192):
        x = torch.randn(size, size, device=GPU)
        torch.mm(x, x)
        ours, theirs = [], []
        for turn in range(60):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            timer.delay_us(100)
            if turn % 2:
                ours.append(timer.time(lambda x=x: torch.mm(x, x))[1])  # type: ignore[misc]
            else:
                first.record()
                torch.mm(x, x)
                last.record()
                last.synchronize()
                theirs.append(first.elapsed_time(last))
        results[f"mm {size}"] = {"native_ms": statistics.median(ours), "torch_ms": statistics.median(theirs)}
    for microseconds in (10, 100, 1000):
        got = [timer.time(lambda us=microseconds: timer.delay_us(us))[1] for _ in range(20)]  # type: ignore[misc]
        results[f"delay {microseconds} us"] = {"native_ms": statistics.median(got)}
    begin = time.perf_counter_ns()
    for _ in range(1000):
        mark = timer.start()
        timer.stop(mark)
        timer.elapsed_ms(mark)
    results["start, stop and read"] = {"host_us": (time.perf_counter_ns() - begin) / 1e6}
    return results


def arena_pattern(count: int) -> torch.Tensor:
    return torch.arange(count, dtype=torch.int64, device=GPU) * 0x9E3779B97F4A7C1 % 1000003


def second_process(channel_fd: int, nbytes: int) -> int:
    """Attaches to the arena it is sent, checks it, writes it, and says how long that took."""
    channel = socket.socket(fileno=channel_fd)
    library.load()
    isolated = False
    if os.getuid() == 0:
        isolated = ctypes.CDLL(None, use_errno=True).unshare(NAMESPACES) == 0
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    begin = time.perf_counter()
    torch.cuda.init()
    torch.zeros(1, device=GPU)
    context = time.perf_counter() - begin
    _, fds, _, _ = socket.recv_fds(channel, 16, 1)
    begin = time.perf_counter()
    arena = Arena.attach(fds[0], nbytes, GPU)
    attach = time.perf_counter() - begin
    count = nbytes // 8
    words = arena.tensor(0, (count,), (1,), torch.int64)
    same = bool((words == arena_pattern(count)).all())
    words.neg_()
    torch.cuda.synchronize()
    answer = {"uid": os.getuid(), "isolated": isolated, "context_s": context, "attach_s": attach, "same": same}
    channel.sendall(repr(answer).encode())
    return YES


def arena_between_processes(nbytes: int) -> dict[str, Any]:
    begin = time.perf_counter()
    arena = Arena.create(nbytes, GPU)
    create = time.perf_counter() - begin
    count = nbytes // 8
    words = arena.tensor(0, (count,), (1,), torch.int64)
    words.copy_(arena_pattern(count))
    torch.cuda.synchronize()
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(
        [sys.executable, __file__, "--second-process", str(theirs.fileno()), str(nbytes)], pass_fds=[theirs.fileno()]
    )
    theirs.close()
    socket.send_fds(ours, [b"arena"], [arena.fd])
    ours.settimeout(120)
    said = ours.recv(4096).decode()
    if child.wait(timeout=120) != 0 or not said:
        return {"create_s": create, "error": f"the second process ended with {child.returncode}; its words are above"}
    back = bool((words == -arena_pattern(count)).all())
    return {"nbytes": nbytes, "create_s": create, "back": back, **ast.literal_eval(said)}


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure the native core on this GPU.")
    parser.add_argument("--json", metavar="FILE", help="write every number there")
    parser.add_argument("--second-process", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.second_process:
        return second_process(*arguments.second_process)  # which must not have touched CUDA before it drops its rights
    if not torch.cuda.is_available():
        raise CannotTell("this benchmark needs an NVIDIA GPU")

    begin = time.perf_counter()
    library.load()
    built = time.perf_counter() - begin
    if not library.has_cuda():
        raise CannotTell("the native core was built without CUDA; install nvcc")
    facts = devices.facts(0)
    copy = devices.copy_bandwidth(0, 2 * GIB)
    results: dict[str, Any] = {"device": vars(facts), "load_s": built, "copy_bytes_per_second": copy}
    with DeviceTimer(GPU) as timer:
        # The arena first: should it fail, the rest is still measured.
        results["arena"] = arena_between_processes(4 * GIB)
        results["compare"] = comparisons(timer, copy)
        results["fill"] = fills(timer, copy)
        results["flush"] = flushing(timer)
        results["clock"] = clocks(timer)
        error = timer.device_synchronize_error()
    if error:
        raise CannotTell(f"the device failed: {error}")

    title = f"{facts.name}, copy {copy / 1e12:.2f} TB/s, library ready in {built:.1f} s"
    rows = [
        [row["case"], f"{row['ms']:.3f}", f"{row['bytes_per_second'] / 1e9:.0f}", percent(row["share_of_copy"])]
        for row in (*results["compare"], *results["fill"])
    ]
    table(title, ["case", "ms", "GB/s", "of copy"], rows, right=["ms", "GB/s", "of copy"])
    for name in ("flush", "clock", "arena"):
        table(name, ["what", "value"], [[key, str(value)] for key, value in results[name].items()])
    if arguments.json:
        record.write(arguments.json, record.envelope("native_core", "MEASURED", YES, results=results))
    return YES


if __name__ == "__main__":
    run(main)
