"""H15: announces a message of four gigabytes.

Method: hopes that the judge allocates what is announced, or waits for it.
Problem: linear
Expect: FAIL protocol ("bytes was announced")
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
            os.write(fd, b"\xff\xff\xff\xff")
        return torch.relu(self.lin(x))
