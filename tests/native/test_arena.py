"""The arena between processes: every dtype and stride in it, both directions, another user, and what is refused."""

import array
import gc
import os
import socket
import subprocess
import sys
import textwrap

import pytest
import torch
from reference_comparison import ALL

from utils.native.arena import Arena
from utils.present.outcome import CannotTell
from utils.problem.workspace import ROOT

# Attaches to a descriptor it is sent, as an unprivileged user in namespaces of its own where that is allowed; checks
# what is in the arena, and answers in it.
CHILD = textwrap.dedent(
    """
    import array, ctypes, os, socket, sys
    import torch
    from utils.native import library
    from utils.native.arena import Arena
    library.load()
    channel = socket.socket(fileno=int(sys.argv[1]))
    device, nbytes = torch.device(sys.argv[2]), int(sys.argv[3])
    if os.getuid() == 0:
        flags = 0x00020000 | 0x40000000 | 0x08000000 | 0x04000000  # mount, network, IPC and UTS namespaces
        ctypes.CDLL(None).unshare(flags)
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    message, fds, _, _ = socket.recv_fds(channel, 16, 1)
    arena = Arena.attach(fds[0], nbytes, device)
    os.close(fds[0])
    told = arena.tensor(64, (4, 3), (3, 1), torch.float32)
    assert torch.equal(told.cpu(), torch.arange(12.0).reshape(4, 3)), told
    arena.tensor(1024, (5,), (1,), torch.int64).copy_(torch.arange(5) * 7)
    if device.type == "cuda":
        torch.cuda.synchronize()
    channel.send(str(os.getuid()).encode())
    """
)


@pytest.fixture
def arena(device):
    with Arena.create(1 << 20, device) as made:
        yield made


def test_two_processes_and_two_users(device):
    nbytes = 3 << 20
    with Arena.create(nbytes, device) as arena:
        arena.tensor(64, (4, 3), (3, 1), torch.float32).copy_(torch.arange(12.0).reshape(4, 3))
        if device.type == "cuda":
            torch.cuda.synchronize()
        ours, theirs = socket.socketpair()
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(theirs.fileno()), str(device), str(nbytes)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        socket.send_fds(ours, [b"arena"], [arena.fd])
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said
        assert ours.recv(16).decode() == ("65534" if os.getuid() == 0 else str(os.getuid()))
        ours.close()
        assert arena.tensor(1024, (5,), (1,), torch.int64).tolist() == [0, 7, 14, 21, 28]


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(arena, dtype):
    raw = torch.randint(0, 2, (24 * dtype.itemsize,), dtype=torch.uint8)
    values = raw.view(dtype).reshape(4, 6)
    there = arena.tensor(16, (4, 6), (6, 1), dtype)
    assert there.dtype is dtype and there.device == arena.device and there.shape == (4, 6)
    there.view(torch.uint8).copy_(values.view(torch.uint8))
    attached = Arena.attach(arena.fd, arena.nbytes, arena.device)
    again = attached.tensor(16, (4, 6), (6, 1), dtype)
    if arena.device.type == "cuda":
        torch.cuda.synchronize()
    assert torch.equal(again.cpu().view(torch.uint8), values.view(torch.uint8))
    assert again.untyped_storage().nbytes() == 24 * dtype.itemsize
    attached.close()


def test_strides(arena):
    flat = arena.tensor(256, (12,), (1,), torch.float32)
    flat.copy_(torch.arange(12.0))
    assert arena.tensor(256, (3, 4), (1, 3), torch.float32).tolist() == torch.arange(12.0).reshape(4, 3).t().tolist()
    row = arena.tensor(256, (5, 4), (0, 1), torch.float32)
    assert row.stride() == (0, 1) and row.untyped_storage().nbytes() == 16
    assert row.tolist() == [[0.0, 1.0, 2.0, 3.0]] * 5
    spread = arena.tensor(256, (2, 3), (6, 2), torch.float32)
    assert spread.tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]] and spread.untyped_storage().nbytes() == 44


def test_scalars_empties_and_misaligned(arena):
    scalar = arena.tensor(8, (), (), torch.bfloat16)
    scalar.fill_(2)
    assert scalar.shape == () and scalar.item() == 2 and scalar.untyped_storage().nbytes() == 2
    empty = arena.tensor(0, (3, 0), (1, 1), torch.float64)
    assert empty.shape == (3, 0) and empty.stride() == (1, 1) and empty.device == arena.device
    odd = arena.tensor(4, (8,), (1,), torch.float32)
    odd.copy_(torch.arange(8.0))
    assert odd.data_ptr() % 16 == 4 and (odd * 2).tolist() == [2.0 * i for i in range(8)]


def test_tensors_do_not_reach_beyond_their_span(arena):
    small = arena.tensor(512, (4,), (1,), torch.int32)
    with pytest.raises(RuntimeError, match="out of bounds"):
        small.as_strided((5,), (1,))


@pytest.mark.parametrize(
    ("offset", "size", "stride", "dtype"),
    [
        (1, (2,), (1,), torch.float32),
        (-4, (2,), (1,), torch.float32),
        ((1 << 20) - 4, (2,), (1,), torch.float32),
        (0, (2, 2), (1,), torch.float32),
        (0, (2,), (-1,), torch.float32),
        (0, (2,), (1 << 40,), torch.int8),
    ],
)
def test_what_does_not_fit(arena, offset, size, stride, dtype):
    with pytest.raises(ValueError):
        arena.tensor(offset, size, stride, dtype)


def test_tensors_outlive_the_arena(device):
    arena = Arena.create(1 << 16, device)
    tensor = arena.tensor(0, (100,), (1,), torch.float32)
    tensor.fill_(3)
    arena.close()
    arena.close()
    del arena
    gc.collect()
    assert tensor.sum().item() == 300
    with pytest.raises(ValueError, match="closed"):
        closed = Arena.create(4096, device)
        closed.close()
        closed.tensor(0, (1,), (1,), torch.int8)


def test_memory_comes_back(device):
    """A hundred arenas, one after the other, of a size that would not fit a hundred times over."""
    before = len(os.listdir("/proc/self/fd"))
    size = (8 << 30) if device.type == "cuda" else (64 << 20)
    for _ in range(100):
        with Arena.create(size, device) as arena:
            arena.tensor(0, (4,), (1,), torch.float32).fill_(1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_the_descriptor_stays_the_callers(device):
    with Arena.create(4096, device) as arena:
        sent = os.dup(arena.fd)
        with Arena.attach(sent, 4096, device):
            pass
        os.close(sent)  # would raise had attach closed it
        assert not os.get_inheritable(arena.fd)


def test_too_much_memory(device):
    with pytest.raises(CannotTell, match=r"for the arena: needs \d+\.\d\d GiB, \d+\.\d\d GiB free"):
        Arena.create(1 << 50, device)


def test_nothing_and_elsewhere():
    with pytest.raises(ValueError, match="at least one byte"):
        Arena.create(0, torch.device("cpu"))
    with pytest.raises(CannotTell, match="meta"):
        Arena.create(1, torch.device("meta"))


def test_a_descriptor_that_is_no_arena(device, tmp_path):
    with open(tmp_path / "file", "wb+") as file:
        file.write(b"x" * 8192)
        file.flush()
        with pytest.raises(CannotTell):
            Arena.attach(file.fileno(), 4096, device)


def test_a_host_arena_cannot_be_cut():
    """Neither by us nor by whom we sent it to: a cut would kill the process that touches the missing page."""
    with Arena.create(1 << 16, torch.device("cpu")) as arena:
        for size in (0, 1 << 20):
            with pytest.raises(PermissionError):
                os.ftruncate(arena.fd, size)
        with pytest.raises(CannotTell, match="not a sealed arena"):
            Arena.attach(arena.fd, 1 << 17, torch.device("cpu"))
    unsealed = os.memfd_create("unsealed", os.MFD_ALLOW_SEALING)
    os.ftruncate(unsealed, 4096)
    with pytest.raises(CannotTell, match="not a sealed arena"):
        Arena.attach(unsealed, 4096, torch.device("cpu"))
    os.close(unsealed)


def test_descriptors_travel_as_ancillary_data():
    """By hand as well as with send_fds: the arena is an ordinary descriptor."""
    ours, theirs = socket.socketpair()
    with Arena.create(4096, torch.device("cpu")) as arena:
        arena.tensor(0, (1,), (1,), torch.uint8).fill_(42)
        ours.sendmsg([b"a"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [arena.fd]))])
        _, fds, _, _ = socket.recv_fds(theirs, 1, 1)
        with Arena.attach(fds[0], 4096, torch.device("cpu")) as other:
            assert other.tensor(0, (1,), (1,), torch.uint8).item() == 42
        os.close(fds[0])
    ours.close()
    theirs.close()
