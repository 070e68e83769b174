"""Memory that ran out in the judge's own process: a limit of the machine, never a fault of the solution."""

from __future__ import annotations

import torch

from utils.native import library

# Libraries of CUDA and the host's allocator tell of it in a plain RuntimeError.
_WORDS = ("out of memory", "out of device memory", "_ALLOC_FAILED", "can't allocate memory")


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that memory, of the device or the host, was not enough."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, library.NativeError) and error.code == library.OUT_OF_MEMORY:
        return True
    return any(word in str(error) for word in _WORDS)


def kept_share(device: torch.device) -> float:
    """Share of the device's memory that torch keeps for this process, in use or for later; 0 for the CPU."""
    if device.type != "cuda" or not torch.cuda.is_initialized():
        return 0.0
    return torch.cuda.memory_reserved(device) / torch.cuda.get_device_properties(device).total_memory


def give_back() -> None:
    """Lets other processes have the device memory that torch keeps here for later."""
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
