"""The runner's process from the judge's side: what it may see, how it is started, watched, and cleared away.

The layers themselves are entered by bootstrap.py in the new process. Here is decided which folders the runner needs,
which it must not see, and under which user it runs; and here everything it may have left behind is found and killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from utils.judge.processes import command, descendants, memory_files, processes, proportional, reap, resident
from utils.judge.protocol import Channel, Closed, ProtocolError, TimedOut, nonce
from utils.judge.staging import Stage, home_folder
from utils.present.outcome import CannotTell
from utils.problem.workspace import ROOT

# Folders no mask may cover: without them no process starts.
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/sys", "/dev", "/nix")
_PRIVATE = ("/tmp", "/var/tmp", "/dev/shm")
_PRIVATE_BYTES = 8 << 30
# The person's terminals, and the sockets of the system's services: nothing that computes needs them. The exceptions
# are where some systems keep the driver's libraries, or everything.
_UNNEEDED = ("/dev/pts", "/run")
_RUN_KEPT = tuple(
    Path("/run") / name
    for name in ("nvidia", "nvidia-persistenced", "opengl-driver", "current-system", "booted-system", "wrappers")
)
_LIMITS = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": 65536, "RLIMIT_FSIZE": 16 << 30}
# What the runner's environment takes over from the judge's: where CUDA and the compilers are, and which GPUs.
_ENVIRONMENT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "TORCH_CUDA_ARCH_LIST",
    "CC",
    "CXX",
    "MAX_JOBS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ASAN_OPTIONS",
    "TRITON_INTERPRET",
)

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36


@dataclass(frozen=True)
class Policy:
    """How much isolation is asked for: the default takes every layer it can get and says which it could not."""

    sandbox: bool = True
    require: bool = False
    memory_limit: int | None = None  # bytes of resident memory over all of the runner's processes
    hide: tuple[Path, ...] = ()  # folders beside the workspace that the runner must not see (the problem's, say)


@dataclass
class Layers:
    """What the sandbox consists of on this machine."""

    had: list[str] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)

    def sentences(self) -> list[str]:
        return [f"sandbox without {layer}: {why}" for layer, why in self.lacking.items()]


# Runners that live, by pid: children of the judge that no other runner may take for its own orphans.
_runners: set[int] = set()


class Process:
    """A started runner. `channel` talks to it; `output` is what it printed; `kill` leaves nothing of it behind."""

    def __init__(self, stage: Stage, policy: Policy, entry: list[str], variables: dict[str, str]) -> None:
        self.layers = Layers()
        self.memory_peak = 0
        self.memory_exceeded = False
        self._killing, self._killed = threading.Lock(), False
        self._policy = policy
        self._stage_root = stage.root
        self._uid = _unused_uid() if policy.sandbox and os.geteuid() == 0 else None
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        # Keeps a process of the same user from reading this one's memory, where the answers are.
        _prctl(_PR_SET_DUMPABLE, 0)
        ours, theirs = socket.socketpair()
        number = _unobvious(theirs)
        orders = _orders(stage, policy, self._uid, [*entry, str(number)], variables)
        interpreter = os.path.realpath(sys.executable)
        with theirs:
            os.dup2(theirs.fileno(), number, inheritable=True)
            try:
                self._process = subprocess.Popen(
                    [interpreter, "-I", "-S", "-B", str(stage.harness / "utils/judge/bootstrap.py"), str(number)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    pass_fds=(number,),
                    cwd="/",
                    env={
                        "LANG": "C.UTF-8",
                        **{name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                    },
                    start_new_session=True,
                )
            finally:
                os.close(number)
        self.pid = self._process.pid
        _runners.add(self.pid)
        self.channel = Channel(ours)
        self.output = Output(self._process)
        self._nonce = nonce()
        self.channel.send({"n": self._nonce, **orders}, timeout=30)
        self._watching = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def settle_in(self, timeout: float) -> None:
        """Waits for the bootstrap's report. Raises CannotTell when the sandbox does not stand or is not enough."""
        try:
            message, _ = self.channel.receive(timeout)
        except (Closed, TimedOut, ProtocolError) as error:
            self.kill()
            raise CannotTell(
                f"the sandbox could not be set up ({type(error).__name__}): {self.output.tail(600) or 'no output'}"
            ) from None
        if self._policy.sandbox:
            self.layers = Layers(list(message["had"]), dict(message["lacking"]))
        else:
            self.layers = Layers(
                [], {"everything": "--no-sandbox was given; the solution only has a process of its own"}
            )
        if self._policy.require and self.layers.lacking:
            self.kill()
            raise CannotTell("--require-sandbox: " + "; ".join(self.layers.sentences()))

    def exit_status(self, wait: float = 2.0) -> int | None:
        """The exit code (negative: the signal) once the process has ended, None while it runs."""
        try:
            return self._process.wait(wait)
        except subprocess.TimeoutExpired:
            return None

    def left_behind(self) -> list[str]:
        """Command names of processes the runner started that outlive it."""
        return [command(pid) for pid in self._others() if pid != self.pid]

    def threads(self) -> int:
        """How many threads the runner's process has now."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/task"))
        except OSError:
            return 0

    def kill(self) -> None:
        """Kills everything of the runner: its process group, its user's processes, its orphans. Once is enough."""
        with self._killing:
            if not self._killed:
                self._killed = True
                self._kill()

    def _kill(self) -> None:
        self._watching.set()
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        # A process that forks while it is being killed needs another round.
        for _ in range(20):
            alive = self._others()
            for pid in alive:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.5)
            reap(pid for pid in alive if pid != self.pid)
            if not alive:
                break
            time.sleep(0.02)
        _runners.discard(self.pid)
        self.channel.close()
        self.output.join()

    def _others(self) -> list[int]:
        """Live processes that belong to this runner: of its user, or descending from it, or orphaned to the judge."""
        parents, users, states = processes()
        children: dict[int, list[int]] = {}
        for pid, parent in parents.items():
            children.setdefault(parent, []).append(pid)
        found, queue = set(), [self.pid]
        if self._uid is None:
            queue += [pid for pid in children.get(os.getpid(), []) if self._adopted(pid)]
        while queue:
            pid = queue.pop()
            if pid in parents and pid not in found:
                found.add(pid)
                queue += children.get(pid, [])
        if self._uid is not None:
            found |= {pid for pid, user in users.items() if user == self._uid}
        return [pid for pid in found if states.get(pid) not in ("Z", "X", None)]

    def _adopted(self, pid: int) -> bool:
        """Whether a child of the judge is an orphan of a runner: of another namespace, or with its environment."""
        if pid in _runners:
            return False
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                return True
        with contextlib.suppress(OSError):
            return str(self._stage_root).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        return False

    def _private_files(self) -> int:
        """Bytes in the runner's private temporary folders, which lie in memory."""
        if "private file system" not in self.layers.had:
            return 0
        used = 0
        for folder in _PRIVATE:
            with contextlib.suppress(OSError):
                status = os.statvfs(f"/proc/{self.pid}/root{folder}")
                used += (status.f_blocks - status.f_bfree) * status.f_frsize
        return used

    def _watch(self) -> None:
        """Looks at the memory of the runner's processes twenty times a second and ends them beyond the limit."""
        rounds = files = 0
        pids: list[int] = [self.pid]
        while not self._watching.wait(0.05):
            # Orphans are only found by looking at every process, which takes a while on a large machine.
            if rounds % 100 == 99:
                pids = self._others()
            elif rounds % 4 == 0:
                pids = descendants(self.pid)
            rounds += 1
            if rounds % 4 == 1:
                files = memory_files(pids) + self._private_files()
            used = sum(map(resident, pids)) + files
            # What children share with their parent counts once; to know takes a walk through their page tables.
            if len(pids) > 1 and used > self.memory_peak:
                used = sum(map(proportional, pids)) + files
            self.memory_peak = max(self.memory_peak, used)
            if self._policy.memory_limit is not None and used > self._policy.memory_limit:
                self.memory_exceeded = True
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
                return


class Output:
    """What the runner printed: drained all the time so that it never blocks, kept only in part."""

    _KEPT = 32 << 10

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._lock = threading.Lock()
        self._head, self._tail, self.total = bytearray(), bytearray(), 0
        self._threads = [
            threading.Thread(target=self._drain, args=(pipe,), daemon=True) for pipe in (process.stdout, process.stderr)
        ]
        for thread in self._threads:
            thread.start()

    def text(self) -> str:
        """The beginning and the end, with what was left out between them stated; control characters made visible."""
        with self._lock:
            head, tail, total = bytes(self._head), bytes(self._tail), self.total
        left_out = total - len(head) - len(tail)
        gap = f"\n[... {left_out} bytes left out ...]\n" if left_out > 0 else ""
        return _printable(head) + gap + _printable(tail)

    def tail(self, characters: int) -> str:
        return self.text()[-characters:].strip()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(1.0)

    def _drain(self, pipe: object) -> None:
        fd = pipe.fileno()  # type: ignore[attr-defined]
        while True:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.total += len(data)
                room = self._KEPT - len(self._head)
                self._head += data[:room] if room > 0 else b""
                self._tail += data[max(room, 0) :]
                del self._tail[: -self._KEPT]


def _orders(
    stage: Stage, policy: Policy, uid: int | None, entry: list[str], variables: dict[str, str]
) -> dict[str, object]:
    keep, mask = [*needed(stage), *(path for path in _RUN_KEPT if _there(path))], [*hidden(stage, policy), *_UNNEEDED]
    private = [folder for folder in _PRIVATE if Path(folder).is_dir()]
    home, temporary = stage.root / "home", stage.root / "tmp"
    path = os.environ.get("PATH", "/usr/bin:/bin")
    tools = str(Path(sys.executable).parent)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment.update(
        PATH=path if tools in path.split(":") else f"{tools}:{path}",
        HOME=str(home),
        TMPDIR=str(temporary),
        USER="runner",
        LOGNAME="runner",
        XDG_CACHE_HOME=str(home / ".cache"),
        TORCH_EXTENSIONS_DIR=str(stage.cache / "torch_extensions"),
        TRITON_CACHE_DIR=str(stage.cache / "triton"),
        TORCHINDUCTOR_CACHE_DIR=str(temporary / "inductor"),
        CUDA_CACHE_PATH=str(stage.cache / "cuda"),
        KERNEL_WORKBENCH_NATIVE=str(stage.native),
        **variables,
    )
    return {
        "sandbox": policy.sandbox,
        "uid": uid,
        "groups": _device_groups(),
        "keep": sorted({str(path) for path in keep}),
        "mask": [*mask, *private],
        "private": private,
        "private_bytes": min(_PRIVATE_BYTES, policy.memory_limit or _PRIVATE_BYTES),
        "stale_locks": str(stage.cache / "torch_extensions") if stage.lock else None,
        "writable": [str(home), str(temporary), str(stage.cache)],
        "owned": [str(home), str(temporary), str(stage.cache)],
        "limits": _LIMITS,
        "cwd": str(home),
        "exec": [os.path.realpath(sys.executable), "-I", "-S", "-B", *entry],
        "env": environment,
    }


def import_path(stage: Stage) -> list[str]:
    """Where the runner imports from: this interpreter's own paths, without any folder of a workspace."""
    paths = []
    for entry in sys.path:
        folder = Path(entry).resolve()
        if entry and _there(folder) and not _is_workspace(folder) and folder not in stage.sources:
            paths.append(str(Path(entry).absolute()))
    return paths


def needed(stage: Stage) -> list[Path]:
    """Folders without which the runner cannot work, each as named and as it really lies."""
    named = [
        Path(sys.base_prefix),
        Path(sys.base_exec_prefix),
        Path(sys.executable).parent,
        Path(os.path.realpath(sys.executable)).parent,
        *(Path(path) for path in import_path(stage)),
        *(Path(path) for path in sysconfig.get_paths().values()),
        stage.root,
        stage.cache,
        *(Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)),
        *(Path(path) for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")),
    ]
    for tool in ("nvcc", "g++", "ninja"):
        found = shutil.which(tool)
        if found:
            named.append(Path(found).parent)
            if tool == "nvcc":
                # A toolkit is more than its bin folder.
                named.append(Path(found).resolve().parent.parent)
    both = {path.absolute() for path in named} | {path.resolve() for path in named}
    return sorted(path for path in both if _there(path) and path != Path("/") and not _is_workspace(path))


def _there(path: Path) -> bool:
    """Whether a path exists as far as this user may know."""
    try:
        return path.exists()
    except OSError:
        return False


def hidden(stage: Stage, policy: Policy) -> list[str]:
    """Folders replaced by empty ones: homes, the repository, the workspace, and what only their owner may enter."""
    folders = {home_folder(), Path("/root"), Path("/home"), ROOT, *stage.sources, *policy.hide}
    folders |= {blocked for path in needed(stage) if (blocked := _first_closed(path)) is not None}
    return sorted(str(path) for path in folders if _there(path) and path.is_dir() and not _holds_system(path))


def _first_closed(path: Path) -> Path | None:
    """The outermost folder above `path` through which other users may not pass."""
    for parent in reversed(path.parents):
        with contextlib.suppress(OSError):
            if not parent.stat().st_mode & 0o001:
                return parent
    return None


def _holds_system(folder: Path) -> bool:
    """Whether a folder is or contains one of the system's; one inside them (/opt/project, say) can be masked."""
    folder = folder.resolve()
    systems = {path for system in _SYSTEM for path in (Path(system), Path(system).resolve())}
    return any(system == folder or folder in system.parents for system in systems)


def _is_workspace(folder: Path) -> bool:
    """Whether a folder is, contains or lies in the repository, but for an environment kept there: nothing is imported
    from such a folder."""
    if folder == ROOT or folder in ROOT.parents:
        return True
    return ROOT in folder.parents and not folder.is_relative_to(Path(sys.prefix).resolve())


def _unobvious(sock: socket.socket) -> int:
    """A descriptor number that a solution guessing small numbers does not hit."""
    while True:
        number = 300 + secrets.randbelow(600)
        try:
            os.fstat(number)
        except OSError:
            return number


def _unused_uid() -> int | None:
    """A user id nobody has: high, within what this user namespace maps, without a process. None where there is none."""
    lowest, highest = 1 << 30, (1 << 30) + (1 << 24)
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc/self/uid_map").read_text().splitlines()
        spans = [tuple(int(number) for number in line.split()) for line in lines]
        if not any(first <= lowest and highest < first + count for first, _, count in spans):
            first, _, count = max(spans, key=lambda span: span[2])
            if count < 1000:
                return None
            lowest, highest = first + count // 2, first + count - 2
    _, users, _ = processes()
    taken = set(users.values())
    while True:
        uid = lowest + secrets.randbelow(highest - lowest)
        if uid not in taken:
            return uid


def _device_groups() -> list[int]:
    """Groups that own GPU device files which not everyone may open."""
    groups = set()
    for node in Path("/dev").glob("nvidia*"):
        with contextlib.suppress(OSError):
            status = node.stat()
            if status.st_mode & 0o006 != 0o006 and status.st_mode & 0o060 == 0o060:
                groups.add(status.st_gid)
    return sorted(groups)


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
