"""Memory that two processes share, handed over as a file descriptor: on the GPU or in host memory.

On a CUDA device it is physical memory of the driver's virtual-memory API (cuMemCreate), exported as a POSIX file
descriptor; on the CPU it is a memfd, sealed so that neither side can shrink it under the other. A descriptor crosses
users and namespaces (socket.send_fds), which CUDA's older IPC handles do not.

    arena = Arena.create(nbytes, torch.device("cuda:0"))      one process
    arena = Arena.attach(fd, nbytes, torch.device("cuda:0"))  the other, with the descriptor it was sent
    arena.tensor(offset, (4, 8), (8, 1), torch.bfloat16)
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import weakref
from collections.abc import Sequence
from ctypes import c_int32, c_int64, c_uint64
from typing import Any

import torch

from utils.native import library
from utils.native.tensors import device_number, dtype_code, span_bytes
from utils.present.outcome import CannotTell

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_GIB = 2.0**30


class _Block(ctypes.Structure):
    """struct ArenaBlock of src/arena.cpp."""

    _fields_ = [
        ("pointer", c_uint64),
        ("mapped", c_int64),
        ("handle", c_uint64),
        ("fd", c_int32),
        ("device", c_int32),
        ("free", c_int64),
    ]


class _HostMapping:
    """A mapped memfd; the mapping goes when the last tensor on it does."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.view = memoryview(mmap.mmap(fd, nbytes, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))

    def bytes(self, offset: int, nbytes: int) -> torch.Tensor:
        return torch.frombuffer(self.view[offset : offset + nbytes], dtype=torch.uint8)


class _DeviceMapping:
    """Mapped device memory, unmapped when the last tensor on it goes, after the work queued so far has ended."""

    def __init__(self, block: _Block) -> None:
        self.pointer = block.pointer
        self.device = torch.device("cuda", block.device)
        # Not at exit: the driver takes the memory back with the process, and the context may be gone before us.
        weakref.finalize(self, library.load().native_arena_release, ctypes.byref(block)).atexit = False

    def bytes(self, offset: int, nbytes: int) -> torch.Tensor:
        return torch.as_tensor(_DeviceBytes(self, offset, nbytes), device=self.device)


class _DeviceBytes:
    """What torch adopts a span of device memory from; torch keeps this object, and so the mapping, with the tensor."""

    def __init__(self, mapping: _DeviceMapping, offset: int, nbytes: int) -> None:
        self.mapping = mapping
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (mapping.pointer + offset, False),
            "strides": None,
            "version": 3,
        }


class Arena:
    """Shared memory of `nbytes` on `device`. `fd` is this object's own descriptor, open until close()."""

    def __init__(self, fd: int, nbytes: int, device: torch.device, mapping: _HostMapping | _DeviceMapping) -> None:
        self._fd = fd
        self.nbytes = nbytes
        self.device = device
        self._mapping: _HostMapping | _DeviceMapping | None = mapping

    @classmethod
    def create(cls, nbytes: int, device: torch.device) -> Arena:
        """New memory, its content undefined. Raises CannotTell when there is not enough."""
        _check_size(nbytes)
        if device.type == "cpu":
            return cls._create_host(nbytes, device)
        block = _Block()
        _make("native_arena_create", nbytes, _indexed(device), block)
        os.set_inheritable(block.fd, False)
        return cls(block.fd, nbytes, torch.device("cuda", block.device), _DeviceMapping(block))

    @classmethod
    def attach(cls, fd: int, nbytes: int, device: torch.device) -> Arena:
        """The memory behind a descriptor received from its maker, who says `nbytes`. `fd` stays the caller's to close.
        Raises CannotTell when the descriptor is not such memory."""
        _check_size(nbytes)
        own = os.dup(fd)
        try:
            if device.type == "cpu":
                _check_memfd(own, nbytes)
                return cls(own, nbytes, device, _HostMapping(own, nbytes))
            block = _Block()
            _make("native_arena_attach", nbytes, _indexed(device), block, own)
            return cls(own, nbytes, torch.device("cuda", block.device), _DeviceMapping(block))
        except BaseException:
            os.close(own)
            raise

    @classmethod
    def _create_host(cls, nbytes: int, device: torch.device) -> Arena:
        free = _available_host_memory()
        if nbytes > free:
            raise CannotTell(_too_little("memory", nbytes, free))
        fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, nbytes)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
            return cls(fd, nbytes, device, _HostMapping(fd, nbytes))
        except OSError as error:
            os.close(fd)
            raise CannotTell(f"{_too_little('memory', nbytes, free)} ({error.strerror})") from None

    @property
    def fd(self) -> int:
        """The descriptor to send to the other process. Raises ValueError after close()."""
        self._open()
        return self._fd

    def tensor(self, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor whose storage begins `offset` bytes into the arena and ends with its last element.

        `size` and `stride` are in elements, strides may be 0, `offset` is a multiple of the dtype's size. The memory
        lives as long as the tensor, whatever becomes of the arena object. Raises ValueError for what does not fit.
        """
        mapping = self._open()
        size, stride = tuple(size), tuple(stride)
        dtype_code(dtype)
        if len(size) != len(stride) or min((*size, *stride), default=0) < 0:
            raise ValueError(f"size {size} and stride {stride} do not describe a tensor")
        nbytes = span_bytes(size, stride, dtype.itemsize)
        if offset < 0 or offset % dtype.itemsize or offset + nbytes > self.nbytes:
            raise ValueError(
                f"{nbytes} bytes of {dtype} at offset {offset} do not fit an arena of {self.nbytes} bytes; "
                f"the offset must be a multiple of {dtype.itemsize}"
            )
        if nbytes == 0:
            return torch.empty_strided(size, stride, dtype=dtype, device=self.device)
        return mapping.bytes(offset, nbytes).view(dtype).as_strided(size, stride)

    def close(self) -> None:
        """Closes the descriptor and lets the memory go with the last tensor on it. May be called again."""
        if self._mapping is not None:
            self._mapping = None
            os.close(self._fd)

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_mapping"):
            self.close()

    def _open(self) -> _HostMapping | _DeviceMapping:
        if self._mapping is None:
            raise ValueError("the arena is closed")
        return self._mapping


def _check_size(nbytes: int) -> None:
    if nbytes <= 0:
        raise ValueError(f"an arena holds at least one byte, not {nbytes}")


def _indexed(device: torch.device) -> int:
    if device.type != "cuda":
        raise CannotTell(f"an arena lies on a CUDA device or the CPU, not on {device}")
    torch.cuda.init()  # torch's primary context is the one to map into
    return device_number(device)


def _too_little(memory: str, nbytes: int, free: int) -> str:
    return f"out of {memory} for the arena: needs {nbytes / _GIB:.2f} GiB, {free / _GIB:.2f} GiB free"


def _make(function: str, nbytes: int, device: int, block: _Block, *fd: int) -> None:
    try:
        try:
            library.call(function, device, *fd, nbytes, ctypes.byref(block))
        except library.NativeError as error:
            if error.code != library.OUT_OF_MEMORY:
                raise
            torch.cuda.empty_cache()  # what torch keeps for later is ours to use
            library.call(function, device, *fd, nbytes, ctypes.byref(block))
    except library.NativeError as error:
        if error.code == library.OUT_OF_MEMORY:
            raise CannotTell(_too_little("device memory", nbytes, block.free)) from None
        raise CannotTell(f"no arena on cuda:{device}: {error}") from None


def _check_memfd(fd: int, nbytes: int) -> None:
    """Without the seal the other side could cut the file, and the next access would kill this process."""
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
    except OSError:
        seals = 0
    if not seals & fcntl.F_SEAL_SHRINK or os.fstat(fd).st_size < nbytes:
        raise CannotTell(f"the descriptor is not a sealed arena of {nbytes} bytes")


def _available_host_memory() -> int:
    with open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
