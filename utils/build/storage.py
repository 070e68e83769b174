"""Places the build writes: the build folder and its lock, whole-or-nothing files, the user's cache folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from utils.present.outcome import CannotTell

CACHE_NAME = "kernel-workbench"


def writable_folder(folder: Path) -> Path:
    """Makes `folder` and sees that files can be made in it. Raises CannotTell with path, owner and reason."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".probe.")
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        place = next((each for each in (folder, *folder.parents) if each.exists()), folder)
        raise CannotTell(
            f"cannot write in {folder}: {error.strerror} (owner of {place}: {_owner(place)}); "
            "make that folder writable, or build in a copy of the workspace that you can write in"
        ) from None
    return folder


def _owner(path: Path) -> str:
    try:
        uid = path.stat().st_uid
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
    except OSError:
        return "unknown"


def write_text(path: Path, content: str, only_if_changed: bool = False) -> None:
    """Writes `path` whole or not at all; with `only_if_changed` an equal file keeps its time stamp."""
    data = content.encode("utf-8", "surrogateescape")
    if only_if_changed:
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.chmod(name, 0o666 & ~_umask())
    os.replace(name, path)


def install(built: Path, target: Path) -> None:
    """Puts a copy of `built` at `target` in one step: whoever opens `target` finds the old file or the new, whole."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file, open(built, "rb") as source:
            shutil.copyfileobj(source, file, 1 << 20)
        os.chmod(name, 0o777 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: Path, waiting: Callable[[str], None]) -> Iterator[None]:
    """Holds the lock of a build folder. The system drops it with its holder: a file left by a dead build locks nothing.

    `waiting` is told once, with the holder's process, when another build is running.
    """
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown process"
            waiting(f"another build is running here ({holder}); waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(f"pid {os.getpid()}, since {time.strftime('%H:%M:%S')}")
        file.flush()
        yield


def cache_folder() -> Path | None:
    """The user's cache folder of the workbench, made when needed; a private one among the temporary files where that
    place cannot be written or belongs to somebody else; None where neither can be had."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path(os.path.expanduser("~")) / ".cache")
    candidates = [Path(base) / CACHE_NAME, Path(tempfile.gettempdir()) / f"{CACHE_NAME}-{os.getuid()}"]
    for candidate in candidates:
        if not candidate.is_absolute():
            continue
        try:
            candidate.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = candidate.lstat()
            # What is read back is compiled into the user's modules: nobody else may have put it there.
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022:
                handle, name = tempfile.mkstemp(dir=candidate, prefix=".probe.")
                os.close(handle)
                os.unlink(name)
                return candidate
        except OSError:
            continue
    return None
