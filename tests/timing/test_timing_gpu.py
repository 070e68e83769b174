"""NVML readings and the GPU lock, with a driver made of a few functions."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from utils.present.outcome import CannotTell
from utils.problem.workspace import ROOT
from utils.timing import gpu
from utils.timing.lock import gpu_lock


class FakeNvml(SimpleNamespace):
    """The calls `gpu` makes, answered from attributes; what is missing on old cards raises, as NVML does."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, reasons=0, processes=()):
        super().__init__(reasons=reasons, processes=processes)

    def nvmlInit(self): ...
    def nvmlDeviceGetHandleByUUID(self, uuid):
        return uuid

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA Test"

    def nvmlDeviceGetUUID(self, handle):
        return "GPU-1"

    def nvmlSystemGetDriverVersion(self):
        return "999.1"

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetMaxClockInfo(self, handle, kind):
        return 1980

    def nvmlDeviceGetTemperature(self, handle, kind):
        return 45

    def nvmlDeviceGetPowerUsage(self, handle):
        raise RuntimeError("not supported")

    def nvmlDeviceGetEnforcedPowerLimit(self, handle):
        return 700000

    def nvmlDeviceGetMigMode(self, handle):
        raise RuntimeError("not supported")

    def nvmlDeviceGetPersistenceMode(self, handle):
        return 1

    def nvmlDeviceGetComputeMode(self, handle):
        return 0

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):
        return self.reasons

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return self.processes


@pytest.fixture
def nvml(monkeypatch):
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def test_facts_hold_the_card_and_the_span_of_its_readings(nvml):
    with gpu.Monitor("GPU-1") as monitor:
        time.sleep(0.1)
    facts = monitor.facts()
    assert (facts["available"], facts["name"], facts["driver"], facts["power_limit_watts"]) == (
        True,
        "NVIDIA Test",
        "999.1",
        700.0,
    )
    assert facts["sm_mhz"] == {"min": 1980, "median": 1980, "max": 1980}
    assert facts["watts"] is None
    assert facts["readings"] >= 1


def test_thermal_and_hardware_slowdown_make_samples_unusable_and_a_power_cap_does_not(nvml):
    nvml.reasons = 0x04
    with gpu.Monitor("GPU-1") as monitor:
        time.sleep(0.06)
        start = time.monotonic()
        nvml.reasons = 0x40 | 0x04 | 0x01
        time.sleep(0.06)
        end = time.monotonic()
    assert monitor.throttled(0.0, start) == []
    assert monitor.throttled(start, end) == ["thermal slowdown (hardware)"]
    assert monitor.facts()["throttle_reasons"] == ["power cap", "thermal slowdown (hardware)"]


def test_a_span_shorter_than_the_polling_uses_the_reading_before_it(nvml):
    nvml.reasons = 0x08
    with gpu.Monitor("GPU-1") as monitor:
        time.sleep(0.05)
        now = monitor.readings[-1].at + 1e-6
    assert monitor.throttled(now, now + 1e-6) == ["hardware slowdown"]


def test_neighbours_are_the_processes_of_others(nvml):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        entries = [(os.getpid(), 1 << 30), (child.pid, None), (os.getppid(), 5 << 20), (2**22 + 1, 1 << 20)]
        nvml.processes = [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in entries]
        found = gpu.Monitor("GPU-1").neighbours()
        # Three contexts are ours: two are seen here, the unknown pid is taken for the third.
        fewer = gpu.Monitor("GPU-1").neighbours(own=3)
    finally:
        child.kill()
        child.wait()
    assert [entry["pid"] for entry in fewer] == [os.getppid()]
    assert found == [{"pid": os.getppid(), "mib": 5, "visible": True}, {"pid": 2**22 + 1, "mib": 1, "visible": False}]


def test_without_nvml_everything_answers(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with gpu.Monitor(None) as monitor:
        pass
    assert monitor.facts() == {"available": False, "why": "the package nvidia-ml-py is not installed"}
    assert monitor.throttled(0, 1) == []
    assert monitor.neighbours() == []


def test_a_gpu_for_one_process_only_is_refused_with_the_remedy(nvml, monkeypatch):
    assert gpu.Monitor("GPU-1").refuses_company() is None
    monkeypatch.setattr(nvml, "nvmlDeviceGetComputeMode", lambda handle: 3, raising=False)
    assert "nvidia-smi -c DEFAULT" in gpu.Monitor("GPU-1").refuses_company()


def test_a_driver_that_refuses_is_a_reason_not_a_crash(monkeypatch, nvml):
    def refuse():
        raise RuntimeError("Driver Not Loaded")

    monkeypatch.setattr(nvml, "nvmlInit", refuse, raising=False)
    assert "Driver Not Loaded" in gpu.Monitor(None).facts()["why"]


@pytest.fixture
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_WORKBENCH_LOCKS", str(tmp_path))
    return tmp_path


HOLDER = """
import sys, time
sys.path.insert(0, sys.argv[1])
from utils.timing.lock import gpu_lock
with gpu_lock("GPU-1"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def hold(seconds):
    child = subprocess.Popen([sys.executable, "-c", HOLDER, str(ROOT), str(seconds)], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    return child


def test_the_second_waits_for_the_first_and_says_for_whom(locks):
    child = hold(0.5)
    said = []
    with gpu_lock("GPU-1", waiting=said.append):
        assert child.wait(timeout=10) == 0
    assert len(said) == 1
    assert f"process {child.pid}" in said[0]


def test_a_killed_holder_frees_the_lock(locks):
    child = hold(60)
    child.kill()
    child.wait()
    with gpu_lock("GPU-1", patience=5.0):
        pass


def test_patience_ends_with_a_sentence(locks):
    child = hold(60)
    try:
        with pytest.raises(CannotTell, match="another profiling"), gpu_lock("GPU-1", patience=0.2):
            pass
    finally:
        child.kill()
        child.wait()


def test_two_gpus_do_not_wait_for_each_other(locks):
    with gpu_lock("GPU-1"), gpu_lock("GPU-2", patience=0.5):
        pass


def test_a_strange_uuid_stays_inside_the_folder(locks):
    with gpu_lock("../../etc/GPU"):
        assert [path.parent for path in locks.iterdir()] == [locks]


def test_a_symbolic_link_in_the_locks_place_is_not_followed(locks, tmp_path):
    target = tmp_path / "victim"
    target.write_text("precious")
    (locks / "kernel-workbench-GPU-1.lock").symlink_to(target)
    with pytest.raises(CannotTell, match="cannot open the GPU lock"), gpu_lock("GPU-1"):
        pass
    assert target.read_text() == "precious"


def test_the_note_in_the_lock_is_never_trusted(locks):
    (locks / "kernel-workbench-GPU-1.lock").write_text(json.dumps({"pid": "not a number"}))
    with gpu_lock("GPU-1", patience=1.0):
        pass
