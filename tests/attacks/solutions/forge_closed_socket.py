"""H15: closes the connection to the judge.

Method: whoever takes a closed connection for a regular end has lost.
Problem: linear
Expect: FAIL protocol|exit
Options: {"timeout": 8}
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
            os.close(fd)
        return torch.zeros(16, 32)
