"""What the native core knows of a CUDA device, without torch: its facts, its errors, its copy bandwidth."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_double, c_int32, c_int64
from dataclasses import dataclass

from utils.native import library


class _Facts(ctypes.Structure):
    """struct DeviceFacts of src/device.cu."""

    _fields_ = [
        ("name", c_char * 256),
        ("pci", c_char * 32),
        ("major", c_int32),
        ("minor", c_int32),
        ("multiprocessors", c_int32),
        ("clock_khz", c_int32),
        ("memory_clock_khz", c_int32),
        ("bus_bits", c_int32),
        ("driver_version", c_int32),
        ("runtime_version", c_int32),
        ("l2_bytes", c_int64),
        ("persisting_l2_bytes", c_int64),
        ("memory_total", c_int64),
        ("memory_free", c_int64),
        ("shared_per_block", c_int64),
        ("shared_per_multiprocessor", c_int64),
    ]


_FIELDS = [field[0] for field in _Facts._fields_]


@dataclass(frozen=True)
class DeviceFacts:
    """A CUDA device as the driver describes it; sizes in bytes."""

    name: str
    pci: str
    capability: str
    multiprocessors: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    driver_version: int
    runtime_version: int
    l2_bytes: int
    persisting_l2_bytes: int
    """Largest part of L2 that can be set aside for persisting lines."""
    memory_total: int
    memory_free: int
    shared_per_block: int
    """Shared memory a block can opt in to."""
    shared_per_multiprocessor: int


def facts(device: int = 0) -> DeviceFacts:
    """The facts of CUDA device number `device`."""
    raw = _Facts()
    library.call("native_device_facts", device, ctypes.byref(raw))
    values = {name: getattr(raw, name) for name in _FIELDS}
    major, minor = values.pop("major"), values.pop("minor")
    return DeviceFacts(
        **{**values, "name": raw.name.decode(), "pci": raw.pci.decode(), "capability": f"{major}.{minor}"}
    )


def copy_bandwidth(device: int = 0, nbytes: int = 1 << 30, repeats: int = 10) -> float:
    """Bytes per second that a device-to-device copy of `nbytes` moves, read and written together: the best of
    `repeats` of the faster of cudaMemcpyAsync and a plain vectorised kernel. Allocates 2 * nbytes for the while."""
    rate = c_double()
    library.call("native_copy_bandwidth", device, nbytes, repeats, ctypes.byref(rate))
    return rate.value


def synchronize_error(device: int = 0) -> str | None:
    """Waits for everything on the device in this process's context; the error that ended it in words, or None. An
    error here (an illegal access, a failed assertion) is sticky: the process can use CUDA no more."""
    try:
        library.call("native_synchronize_device", device)
    except library.NativeError as error:
        return str(error)
    return None


def pending_errors() -> list[str]:
    """Errors waiting unread in the CUDA runtimes that other libraries of this process loaded, such as a launch with too
    much shared memory that nobody checked: "cudaErrorInvalidValue: invalid argument (libcudart.so.13)". Looks without
    clearing, in the calling thread, whose errors they are. A runtime linked statically into a library cannot be asked.
    """
    if not library.has_cuda():
        return []
    text = ctypes.create_string_buffer(4096)
    library.call("native_pending_errors", text, len(text))
    return text.value.decode(errors="replace").splitlines()
