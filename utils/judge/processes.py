"""What /proc tells of processes: who descends from whom, under which user, and the memory they hold in files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path


def memory_files(pids: Iterable[int]) -> int:
    """Bytes in memfds that these processes hold open and this one does not: the arenas are shared with it."""
    ours = {inode for inode, _ in _memfds(os.getpid())}
    theirs = dict(entry for pid in pids for entry in _memfds(pid))
    return sum(size for inode, size in theirs.items() if inode not in ours)


def _memfds(pid: int) -> list[tuple[int, int]]:
    """(inode, bytes in memory) of each memfd that a process holds open."""
    found = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            link = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):
                if os.readlink(link).startswith("/memfd:"):
                    status = os.stat(link)
                    found.append((status.st_ino, status.st_blocks * 512))
    return found


def resident(pid: int) -> int:
    """Bytes of a process in memory, with everything it shares; 0 when it is gone."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def proportional(pid: int) -> int:
    """Bytes of a process in memory, a page shared by n processes counted as 1/n; all of it where that is not told."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return resident(pid)


def control_group_limits(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> list[int]:
    """Limits on memory, in bytes, of the control groups this process is in (version 1 and 2), where there are any."""
    limits = []
    with contextlib.suppress(OSError, ValueError):
        for line in groups.read_text().splitlines():
            _, kinds, name = line.split(":", 2)
            if kinds and "memory" not in kinds.split(","):
                continue
            top, file = (root / "memory", "memory.limit_in_bytes") if kinds else (root, "memory.max")
            # In a container the group may be named as the host sees it; its own limits then lie at the top.
            group = top / name.lstrip("/")
            for folder in (group, *group.parents):
                with contextlib.suppress(OSError, ValueError):
                    limits.append(int((folder / file).read_text()))
                if folder == top:
                    break
    return [limit for limit in limits if limit > 0]


def descendants(pid: int) -> list[int]:
    """`pid` and its children's children, by the kernel's own lists."""
    found, queue = [], [pid]
    while queue:
        pid = queue.pop()
        found.append(pid)
        with contextlib.suppress(OSError, ValueError):
            for task in os.listdir(f"/proc/{pid}/task"):
                queue += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return found


def processes() -> tuple[dict[int, int], dict[int, int], dict[int, str]]:
    """(parent, effective user, state) of every process."""
    parents, users, states = {}, {}, {}
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            status = Path(f"/proc/{name}/status").read_text()
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        with contextlib.suppress(KeyError, ValueError, IndexError):
            pid = int(name)
            parents[pid], users[pid], states[pid] = (
                int(fields["PPid"]),
                int(fields["Uid"].split()[1]),
                fields["State"][0],
            )
    return parents, users, states


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return f"process {pid}"


def reap(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
