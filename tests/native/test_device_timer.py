"""The timer: its clock runs, its flush empties, its delay delays; on the GPU also that streams and errors are seen."""

import ctypes
import os
import subprocess
import sys
import time

import pytest
import torch
from native_devices import on_gpu, torch_cuda_runtime

from utils.native import device as devices
from utils.native.timer import DeviceTimer
from utils.problem.workspace import ROOT

GPU = "cuda:0"
PERSISTING = 6  # cudaLimitPersistingL2CacheSize


def test_times_a_call_and_returns_its_result(device):
    x = torch.ones(1000, device=device)
    with DeviceTimer(device) as timer:
        timer.flush_l2()
        result, milliseconds = timer.time(lambda: x.sum())
        assert result.item() == 1000 and 0 < milliseconds < 10_000


def test_a_delay_is_measured(device):
    with DeviceTimer(device) as timer:
        timer.delay_us(1)
        for wanted in (200, 2000):
            _, milliseconds = timer.time(lambda wanted=wanted: timer.delay_us(wanted))
            assert milliseconds >= wanted / 1000 * 0.99


def test_many_calls_queued_before_the_first_is_read(device):
    with DeviceTimer(device) as timer:
        marks = []
        for _ in range(200):
            mark = timer.start()
            timer.delay_us(10)
            timer.stop(mark)
            marks.append(mark)
        assert all(timer.elapsed_ms(mark) >= 0.0099 for mark in marks)
        with pytest.raises(KeyError):
            timer.elapsed_ms(marks[0])


def test_closing_twice_and_using_again(device):
    timer = DeviceTimer(device)
    timer.time(lambda: None)
    timer.close()
    timer.close()
    assert timer.time(lambda: None)[1] >= 0
    timer.close()


def test_idle_and_without_error(device):
    timer = DeviceTimer(device)
    timer.synchronize_stream()
    assert timer.stream_is_idle()
    assert timer.device_synchronize_error() is None
    assert timer.pending_errors() == []
    assert timer.settle_ms() >= 0


@on_gpu
def test_agrees_with_torch_events():
    x = torch.randn(4096, 4096, device=GPU)
    with DeviceTimer(torch.device(GPU)) as timer:
        ours, theirs = [], []
        for _ in range(20):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            mark = timer.start()
            x @ x
            timer.stop(mark)
            end.record()
            ours.append(timer.elapsed_ms(mark))
            theirs.append(begin.elapsed_time(end))
        assert sorted(ours)[10] == pytest.approx(sorted(theirs)[10], rel=0.05)


@on_gpu
def test_the_flush_makes_a_warm_read_cold():
    """A buffer that fits L2, just read, is slower to read after a flush."""
    x = torch.ones(16 << 20, dtype=torch.uint8, device=GPU).view(torch.int64)
    with DeviceTimer(torch.device(GPU)) as timer:

        def read(flush):
            times = []
            for _ in range(20):
                x.sum()
                if flush:
                    timer.flush_l2()
                timer.delay_us(50)
                times.append(timer.time(lambda: x.sum())[1])
            return sorted(times)[10]

        assert read(flush=True) > 1.15 * read(flush=False)


@on_gpu
def test_the_flush_takes_the_persisting_part_back():
    """What a solution set aside for lines that a sweep cannot displace."""
    timer, runtime = DeviceTimer(torch.device(GPU)), torch_cuda_runtime()
    limit = ctypes.c_size_t()
    wanted = devices.facts(0).persisting_l2_bytes
    if wanted == 0:
        pytest.skip("this GPU has no persisting L2")
    assert runtime.cudaDeviceSetLimit(PERSISTING, ctypes.c_size_t(wanted)) == 0
    assert runtime.cudaDeviceGetLimit(ctypes.byref(limit), PERSISTING) == 0 and limit.value > 0
    timer.flush_l2()
    assert runtime.cudaDeviceGetLimit(ctypes.byref(limit), PERSISTING) == 0 and limit.value == 0
    assert timer.device_synchronize_error() is None


@on_gpu
def test_work_on_another_stream_is_noticed():
    main = torch.cuda.current_stream(GPU)
    side = torch.cuda.Stream(GPU)
    with DeviceTimer(torch.device(GPU), main.cuda_stream) as timer:
        elsewhere = DeviceTimer(torch.device(GPU), side.cuda_stream)
        timer.settle_ms()
        elsewhere.delay_us(20_000)
        assert not elsewhere.stream_is_idle()
        assert timer.stream_is_idle()
        assert timer.settle_ms() > 5
        assert elsewhere.stream_is_idle() and timer.settle_ms() < 5


@on_gpu
def test_an_illegal_access_is_told_in_words():
    """In a process of its own, which cannot use CUDA afterwards."""
    program = """
import torch
from utils.native.timer import DeviceTimer
timer = DeviceTimer(torch.device("cuda:0"))
assert timer.device_synchronize_error() is None
torch.zeros(4, device="cuda")[torch.tensor([10**9], device="cuda")]
error = timer.device_synchronize_error()
assert error and "cudaError" in error, error
print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0 and "cudaError" in done.stdout, done.stderr


@on_gpu
def test_an_unchecked_launch_error_is_found():
    """Left behind in torch's runtime, as by a launch with too much shared memory; looking does not clear it."""
    runtime = torch_cuda_runtime()
    assert runtime.cudaSetDevice(10_000) != 0
    try:
        found = devices.pending_errors()
        assert len(found) == 1 and found[0].startswith("cudaErrorInvalidDevice: "), found
        assert devices.pending_errors() == found
    finally:
        runtime.cudaGetLastError()
    assert devices.pending_errors() == []


@on_gpu
def test_facts_and_bandwidth():
    facts = devices.facts(0)
    properties = torch.cuda.get_device_properties(GPU)
    assert facts.name == properties.name and facts.multiprocessors == properties.multi_processor_count
    assert facts.capability == f"{properties.major}.{properties.minor}"
    assert facts.l2_bytes == properties.L2_cache_size and 0 < facts.memory_free <= facts.memory_total
    assert 1e11 < devices.copy_bandwidth(0, 256 << 20, 5) < 2e13


def test_the_cpu_flush_takes_its_time_and_no_more():
    timer = DeviceTimer(torch.device("cpu"))
    begin = time.monotonic()
    for _ in range(3):
        timer.flush_l2()
    assert time.monotonic() - begin < 60
