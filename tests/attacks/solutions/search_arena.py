"""H25: maps every shared memory this process has a descriptor of and looks for the answer there.

Method: whatever block is neither an input nor poison would be the expected output.
Problem: linear
Expect: FAIL values|unwritten ("elements differ")
"""

import mmap
import os

import torch
import torch.nn as nn


def blocks():
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        try:
            if "memfd:" in os.readlink(path):
                size = os.fstat(int(name)).st_size
                yield mmap.mmap(int(name), size)
        except OSError:
            pass


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        inputs = x.flatten()
        for block in blocks():
            data = torch.frombuffer(block, dtype=torch.float32)
            for begin in range(0, data.numel() - 512, 128):
                part = data[begin : begin + 512]
                if (
                    bool(part.isfinite().all())
                    and float(part.abs().max()) < 100
                    and float(part.min()) == 0
                    and not torch.equal(part, inputs)
                ):
                    return part.reshape(16, 32).clone()
        return x.clone()
