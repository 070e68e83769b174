"""Has the driver make a device's context while Python still imports torch, which then finds it there.

Both take a good part of a second or more, and neither needs the other. The context is the primary one, which torch and
the native core share. Whatever goes wrong is left for torch to find, which says it in words.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading


def open_context(device: str) -> None:
    """Begins, in a thread of its own, for a torch device string; nothing to do where it is no CUDA device."""
    kind, _, number = device.partition(":")
    if kind == "cuda":
        threading.Thread(target=_open, args=(int(number or 0),), daemon=True).start()


def _open(number: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        driver = ctypes.CDLL("libcuda.so.1")
        handle, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), number) == 0:
            # Never released: it lives as long as the process.
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
