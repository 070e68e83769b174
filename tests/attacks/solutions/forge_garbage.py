"""H15: random bytes on the socket.

Method: hopes to break the judge's parser.
Problem: linear
Expect: FAIL protocol ("interfered with the protocol")
"""

import os

import torch
import torch.nn as nn


def sockets():
    """Descriptors of this process that are sockets."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                os.write(int(name), b"")  # those of the GPU driver are not connected and raise
                found.append(int(name))
        except OSError:
            pass
    return found


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        for fd in sockets():
            os.write(fd, b"\x00\x00\x01\x00" + bytes(range(256)) * 40)
        return torch.relu(self.lin(x))
