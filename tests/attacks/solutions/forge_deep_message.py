"""H15: an answer nested ten thousand levels deep.

Method: hopes that the judge's parser runs out of stack.
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
        payload = b'{"n":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        for fd in sockets():
            os.write(fd, len(payload).to_bytes(4, "big") + payload)
        return torch.relu(self.lin(x))
