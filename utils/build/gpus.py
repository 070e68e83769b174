"""The GPUs present, found without torch: through the driver's management library, else nvidia-smi, else the driver.

The management library needs no CUDA context, so it answers in milliseconds and takes no device memory.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Gpu:
    """A GPU of this machine: its name and compute capability."""

    name: str
    capability: tuple[int, int]
    uuid: str = ""


def present() -> bool:
    """Whether the machine can have a GPU at all: cheap, and false means no."""
    return any(Path(node).exists() for node in ("/dev/nvidiactl", "/dev/dxg", "/dev/nvidia0"))


def visible_gpus() -> list[Gpu]:
    """The GPUs a CUDA program started now would see, in the order of the bus; empty without GPU or driver."""
    if not present():
        return []
    found = _from_nvml()
    if found is None:
        found = _from_nvidia_smi()
    if found is None:
        # The driver applies CUDA_VISIBLE_DEVICES by itself.
        return _from_driver() or []
    return _selected(found, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _selected(gpus: list[Gpu], selection: str | None) -> list[Gpu]:
    """What CUDA_VISIBLE_DEVICES leaves; like the driver, everything from the first entry it does not know is cut."""
    if selection is None:
        return gpus
    chosen: list[Gpu] = []
    for entry in selection.split(","):
        entry = entry.strip()
        if entry.isdigit() and int(entry) < len(gpus):
            chosen.append(gpus[int(entry)])
            continue
        if entry.startswith("MIG-"):
            return gpus
        named = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.uuid.startswith(entry)]
        if not named:
            break
        chosen.append(named[0])
    return chosen


def _from_nvml() -> list[Gpu] | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return None
        found = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            major, minor = ctypes.c_int(), ctypes.c_int()
            if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
                continue
            if nvml.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor)) != 0:
                continue
            name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
            nvml.nvmlDeviceGetName(handle, name, len(name))
            nvml.nvmlDeviceGetUUID(handle, uuid, len(uuid))
            found.append(Gpu(name.value.decode(errors="replace"), (major.value, minor.value), uuid.value.decode()))
        return found
    finally:
        nvml.nvmlShutdown()


def _from_nvidia_smi() -> list[Gpu] | None:
    tool = shutil.which("nvidia-smi")
    if not tool:
        return None
    try:
        answer = subprocess.run(
            [tool, "--query-gpu=name,compute_cap,uuid", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    found = []
    for line in answer.splitlines():
        parts = [part.strip() for part in line.split(",")]
        number = parts[1].split(".") if len(parts) == 3 else []
        if len(number) == 2 and all(part.isdigit() for part in number):
            found.append(Gpu(parts[0], (int(number[0]), int(number[1])), parts[2]))
    return found


def _from_driver() -> list[Gpu] | None:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    count = ctypes.c_int()
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return None
    found = []
    for index in range(count.value):
        device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        name = ctypes.create_string_buffer(96)
        cuda.cuDeviceGet(ctypes.byref(device), index)
        cuda.cuDeviceGetName(name, len(name), device)
        # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
        cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
        cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
        found.append(Gpu(name.value.decode(errors="replace"), (major.value, minor.value)))
    return found
