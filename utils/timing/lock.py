"""One profiling per GPU at a time: the second waits for the first, and a dead holder frees the lock with its
process."""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from utils.present.outcome import CannotTell


def lock_folder() -> Path:
    """Where the locks of all users of this machine meet; the kernel's file lock, not the file, is what locks."""
    return Path(os.environ.get("KERNEL_WORKBENCH_LOCKS", "/tmp" if os.path.isdir("/tmp") else os.curdir))


@contextmanager
def gpu_lock(
    uuid: str, *, patience: float = 600.0, waiting: Callable[[str], None] = lambda sentence: None
) -> Iterator[None]:
    """Holds the lock of the GPU `uuid`; calls `waiting` once, with who holds it, before waiting.

    Raises CannotTell after `patience` seconds. The lock is `flock` on an open file: it goes with the process however
    that ends, and is not inherited by what the process starts (close-on-exec).
    """
    path = lock_folder() / f"kernel-workbench-{re.sub(r'[^A-Za-z0-9-]', '_', uuid)}.lock"
    handle = _open_shared(path)
    try:
        _acquire(handle, path, patience, waiting)
        try:
            # A note for whoever waits; never read to decide anything.
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": time.time()}).encode(), 0)
        except OSError:
            pass
        yield
    finally:
        os.close(handle)


def _open_shared(path: Path) -> int:
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        # Another user's file in a sticky folder may be readable only; a shared lock needs no more.
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError as error:
            raise CannotTell(
                f"cannot open the GPU lock {path}: {error.strerror}; set KERNEL_WORKBENCH_LOCKS to a folder all "
                "users share"
            ) from None
    except OSError as error:
        raise CannotTell(
            f"cannot open the GPU lock {path}: {error.strerror}; set KERNEL_WORKBENCH_LOCKS to a folder all users share"
        ) from None
    with suppress(OSError):
        os.fchmod(handle, 0o666)
    return handle


def _acquire(handle: int, path: Path, patience: float, waiting: Callable[[str], None]) -> None:
    deadline = time.monotonic() + patience
    told = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if not told:
            waiting(f"another profiling ({_holder(handle)}) holds this GPU; waiting for it to finish")
            told = True
        if time.monotonic() >= deadline:
            raise CannotTell(
                f"another profiling ({_holder(handle)}) held this GPU for {patience:.0f} s; try again when it has "
                f"finished ({path})"
            )
        time.sleep(0.1)


def _holder(handle: int) -> str:
    try:
        note = json.loads(os.pread(handle, 4096, 0))
        return f"process {int(note['pid'])}"
    except (OSError, ValueError, KeyError, TypeError):
        return "process unknown"
