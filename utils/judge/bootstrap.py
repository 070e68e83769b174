"""Enters the sandbox, then becomes the runner. Trusted: it runs before any of the solution's code, and never after.

Started by the judge as a fresh interpreter (`python -I -S bootstrap.py FD`); its orders are the first frame on the
socket. Each layer is tried on its own and reported as had or lacking, with the reason; the judge decides what that
means. At the end the process replaces itself by the runner, so that nothing of this one (open files, capabilities,
the undumpable state that a change of user leaves) remains. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import errno
import os
import platform
import resource
import signal
import socket
import stat
import sys
from pathlib import Path
from typing import Any

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWNET = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x40000000
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_NOATIME, _MS_NODIRATIME, _MS_BIND, _MS_REC, _MS_PRIVATE, _MS_RELATIME = (
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 14,
    1 << 18,
    1 << 21,
)
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_SYS_MOUNT_SETATTR = 442  # the same number on every architecture with the generic table, x86-64 included
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1

_SYS_LANDLOCK_CREATE, _SYS_LANDLOCK_ADD, _SYS_LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read files, list folders
_LANDLOCK_OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14  # what applies to a file rather than a folder
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/sys", "/nix", "/var/lib")

_libc = ctypes.CDLL(None, use_errno=True)


def main(fd: int) -> None:
    """Reads the orders from the socket `fd`, enters the layers, reports them, and executes the runner."""
    from utils.judge.protocol import Channel

    channel = Channel(socket.socket(fileno=fd))
    orders, _ = channel.receive(timeout=60)
    report = Report()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if orders["sandbox"]:
        _enter(orders, report)
    _limits(orders["limits"])
    for folder in (orders["env"]["HOME"], orders["env"]["TMPDIR"]):
        Path(folder).mkdir(parents=True, exist_ok=True)
    if orders["sandbox"]:
        _drop_user(orders, report)
        if os.geteuid() == 0 and all(
            _prctl(_PR_CAPBSET_DROP, capability) for capability in range(_last_capability() + 1)
        ):
            report.had("no capabilities")
        if _prctl(_PR_SET_NO_NEW_PRIVS, 1):
            report.had("no new privileges")
        if "private file system" in report.lacks:
            _restrict_files(orders, report)
        _restrict_signals(report)
    _clear_locks(orders["stale_locks"])
    # The change of user cleared it; if the judge died meanwhile, nobody waits for the runner.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    channel.send({"n": orders["n"], "had": report.layers, "lacking": report.lacks}, timeout=10)
    os.chdir(orders["cwd"])
    os.set_inheritable(fd, True)
    os.execve(orders["exec"][0], orders["exec"], orders["env"])


class Report:
    """Which layers hold, and which do not and why."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.lacks: dict[str, str] = {}

    def had(self, layer: str) -> None:
        self.layers.append(layer)

    def lacking(self, layer: str, why: str) -> None:
        self.lacks[layer] = why


def _enter(orders: dict[str, Any], report: Report) -> None:
    """Namespaces and the view of the file system."""
    uid, gid = os.geteuid(), os.getegid()
    if not _may_administer():
        why = _unshare(_NEWUSER)
        if why:
            report.lacking("user namespace", why)
        else:
            # Mapped to itself: the capabilities of the new namespace last until the runner is executed, no longer.
            with contextlib.suppress(OSError):
                Path("/proc/self/setgroups").write_text("deny")
            # A mapped root would keep them: inside, it is an ordinary user.
            try:
                Path("/proc/self/uid_map").write_text(f"{uid or 1000} {uid} 1")
                Path("/proc/self/gid_map").write_text(f"{gid or 1000} {gid} 1")
                report.had("user namespace")
            except OSError as error:
                report.lacking("user namespace", _reason(error.errno))
    for flag, layer in ((_NEWNET, "network isolation"), (_NEWIPC, "IPC isolation"), (_NEWUTS, "own host name")):
        why = _unshare(flag)
        if why:
            report.lacking(layer, why)
        else:
            report.had(layer)
    if "own host name" in report.layers:
        _libc.sethostname(b"runner", 6)
    why = _unshare(_NEWNS)
    if not why:
        try:
            _mounts(orders)
        except OSError as error:
            why = f"{error.strerror}: {error.filename}" if error.filename else _reason(error.errno)
    if why:
        report.lacking("private file system", why)
    else:
        report.had("private file system")


def _mounts(orders: dict[str, Any]) -> None:
    """A read-only view of everything, with the masked folders replaced by empty ones that hold only what is kept."""
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    # Opened now: a kept folder may lie under a mask that is about to hide its path.
    keeps = {path: os.open(path, os.O_PATH) for path in orders["keep"] if Path(path).exists()}
    writable = {path: os.open(path, os.O_PATH) for path in orders["writable"]}
    _read_only_everything()
    for folder in sorted(orders["mask"], key=lambda path: path.count("/")):
        if Path(folder).is_dir() and not Path(folder).is_symlink():
            _mask(
                folder,
                {path: fd for path, fd in keeps.items() if _inside(path, folder)},
                private=orders["private_bytes"] if folder in orders["private"] else None,
            )
    for path, fd in writable.items():
        _bind(path, fd)
        # The read-only mark came with the mount it was cloned from.
        _mount(None, path, None, _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV)
    for fd in (*keeps.values(), *writable.values()):
        os.close(fd)


def _mask(folder: str, keeps: dict[str, int], private: int | None) -> None:
    """An empty file system over `folder`, holding only `keeps`; writable for everyone when `private` (its bytes)."""
    mode, size = ("0755", "16m") if private is None else ("1777", str(private))
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, f"mode={mode},size={size}")
    for path, fd in sorted(keeps.items(), key=lambda item: item[0].count("/")):
        _bind(path, fd)
    if private is None:
        _mount(None, folder, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def _bind(path: str, fd: int) -> None:
    source = f"/proc/self/fd/{fd}"
    if not Path(path).exists():
        if Path(source).is_dir():
            Path(path).mkdir(parents=True)
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).touch()
    _mount(source, path, None, _MS_BIND | _MS_REC)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


def _change_mount(path: bytes, flags: int, attributes: _MountAttributes) -> bool:
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    call = (_SYS_MOUNT_SETATTR, _AT_FDCWD, path, ctypes.c_uint(flags), ctypes.byref(attributes), size)
    return _libc.syscall(*call) == 0


def _read_only_everything() -> None:
    """All mounts but /proc: cuInit fails (error 304) where it cannot write there, and each user only may to its own."""
    if _change_mount(b"/", _AT_RECURSIVE, _MountAttributes(_MOUNT_ATTR_RDONLY, 0, 0, 0)):
        _change_mount(b"/proc", 0, _MountAttributes(0, _MOUNT_ATTR_RDONLY, 0, 0))
        return
    # Kernels before 5.12: one mount at a time, each with the flags it has (an unprivileged user may not drop them).
    words = {
        "nosuid": _MS_NOSUID,
        "nodev": _MS_NODEV,
        "noexec": _MS_NOEXEC,
        "noatime": _MS_NOATIME,
        "nodiratime": _MS_NODIRATIME,
        "relatime": _MS_RELATIME,
    }
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        flags = sum(words.get(word, 0) for word in fields[5].split(","))
        point = fields[4].encode().decode("unicode_escape")
        if point == "/proc":
            continue
        with contextlib.suppress(OSError):
            _mount(None, point, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | flags)


def _restrict_files(orders: dict[str, Any], report: Report) -> None:
    """Where no mounts may be made: Landlock, which any process may ask for, lets only what is listed be opened.

    Reading: the system's folders and what the runner needs. Writing: its own folders and devices. Newer kernels also
    refuse TCP, and signals to processes outside.
    """

    class Ruleset(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]

    version = _landlock_version()
    if version < 1:
        report.lacking("file access by Landlock", _reason(ctypes.get_errno()))
        return
    # Bits in the order of the kernel's header; `refer` came with version 2, `truncate` with 3.
    everything = (1 << (13 + (version >= 2) + (version >= 3))) - 1
    rules = Ruleset(everything, 3 if version >= 4 else 0, 3 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _libc.syscall(_SYS_LANDLOCK_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    allowed = dict.fromkeys([*_SYSTEM, *orders["keep"]], _LANDLOCK_READ)
    allowed |= dict.fromkeys(["/dev", "/proc", *orders["writable"]], everything)
    for path, access in allowed.items():
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_PATH)
            beneath = Beneath(access if Path(path).is_dir() else access & _LANDLOCK_OF_FILES, fd)
            _libc.syscall(_SYS_LANDLOCK_ADD, ruleset, 1, ctypes.byref(beneath), 0)
            os.close(fd)
    if ruleset < 0 or _libc.syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0) != 0:
        report.lacking("file access by Landlock", _reason(ctypes.get_errno()))
        return
    os.close(ruleset)
    report.had("file access by Landlock")
    # Landlock only adds what may be opened: a folder below one of the system's cannot be taken out again.
    open_ = [folder for folder in orders["mask"] if any(_inside(folder, path) for path in _SYSTEM)]
    if open_:
        report.lacking("hiding of the problem", f"{open_[0]} lies in a system folder, and no mounts may be made")
    if version >= 4 and "network isolation" in report.lacks:
        report.had("no TCP, by Landlock")


def _restrict_signals(report: Report) -> None:
    """Where the runner shares its user with the judge and the person's shell: Landlock can refuse signals to them."""
    version = _landlock_version()
    if "own user" in report.layers or ("file access by Landlock" in report.layers and version >= 6):
        return

    class Ruleset(ctypes.Structure):
        _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]

    if version < 6:
        report.lacking("protection from signals", f"this kernel ({platform.release()}) has no Landlock that does it")
        return
    rules = Ruleset(0, 0, 2)
    ruleset = _libc.syscall(_SYS_LANDLOCK_CREATE, ctypes.byref(rules), ctypes.c_size_t(24), 0)
    if ruleset < 0 or _libc.syscall(_SYS_LANDLOCK_RESTRICT, ruleset, 0) != 0:
        report.lacking("protection from signals", _reason(ctypes.get_errno()))
        return
    os.close(ruleset)
    report.had("protection from signals")


def _landlock_version() -> int:
    """The version of Landlock's interface, -1 where the kernel lacks it or it is switched off."""
    return int(_libc.syscall(_SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))


def _clear_locks(folder: str | None) -> None:
    """Removes the lock files of interrupted builds: torch waits for ever for one whose process is dead.

    Done with the rights of the runner, and through no link: what lies in `folder` was left by an earlier run.
    """
    if folder is None:
        return
    only = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        top = os.open(folder, only)
        for name in os.listdir(top):
            with contextlib.suppress(OSError):
                build = os.open(name, only, dir_fd=top)
                try:
                    os.unlink("lock", dir_fd=build)
                finally:
                    os.close(build)
        os.close(top)


def _limits(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _drop_user(orders: dict[str, Any], report: Report) -> None:
    """Becomes a user of its own where this process may; otherwise stays who it is."""
    uid = orders["uid"]
    if "user namespace" in report.layers:
        return
    if uid is None:
        report.lacking("own user", "the judge does not run as root, or no other user is mapped here")
        return
    hidden = [path for path in orders["keep"] if not _reachable(path)]
    if hidden:
        report.lacking("own user", f"another user could not reach {hidden[0]}")
        return
    for folder in orders["owned"]:
        # What an earlier run left in its cache may be deeper than Python can walk; it then stays that run's.
        with contextlib.suppress(OSError, RecursionError):
            for _, folders, files, top in os.fwalk(folder):
                for name in (".", *folders, *files):
                    # A second name of a file may be one outside.
                    status = os.stat(name, dir_fd=top, follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode) or status.st_nlink == 1:
                        os.chown(name, uid, uid, dir_fd=top, follow_symlinks=False)
    try:
        os.setgroups(orders["groups"])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        report.lacking("own user", _reason(error.errno))
        return
    # Only now does the count of processes concern this runner alone.
    _limits({"RLIMIT_NPROC": 8192})
    report.had("own user")


def _reachable(path: str) -> bool:
    """Whether a stranger may walk to `path`: every folder above it lets others pass."""
    return all(parent.stat().st_mode & 0o001 for parent in Path(path).resolve().parents)


def _may_administer() -> bool:
    """Whether this process has CAP_SYS_ADMIN (bit 21) in its namespace."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> 21 & 1)
    return False


def _last_capability() -> int:
    """The highest capability that this kernel knows."""
    try:
        return int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    except (OSError, ValueError):
        return 40


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _unshare(flag: int) -> str:
    """Empty when it worked, else the reason."""
    return "" if _libc.unshare(flag) == 0 else _reason(ctypes.get_errno())


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    done = _libc.mount(*arguments, ctypes.c_ulong(flags), None if data is None else data.encode())
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def _prctl(option: int, value: int) -> bool:
    return _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) == 0


def _reason(number: int | None) -> str:
    words = {
        errno.EPERM: "not permitted here",
        errno.ENOSPC: "the limit on namespaces is zero or reached",
        errno.ENOSYS: "this kernel lacks it",
        errno.EINVAL: f"this kernel ({platform.release()}) lacks it",
    }
    return words.get(number or 0) or os.strerror(number or 0)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    main(int(sys.argv[1]))
