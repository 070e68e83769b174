"""H15 C24: an answer of one byte per second.

Method: a time limit for each read, instead of the whole, never ends.
Problem: linear
Expect: FAIL timeout ("hangs")
Options: {"timeout": 8}
"""

import os
import time

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
        fd = sockets()[0]
        os.write(fd, (1 << 20).to_bytes(4, "big"))
        while True:
            os.write(fd, b" ")
            time.sleep(1)
