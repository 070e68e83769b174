"""C44: two and a half gigabytes, once, in anonymous files that belong to no process's resident memory.

Method: memfd_create and write; /proc/PID/statm does not count it.
Problem: linear
Expect: FAIL memory ("GiB of memory")
Options: {"memory_limit": 1610612736}
"""

import os
import time

import torch
import torch.nn as nn


FILES = []


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        if not FILES:
            FILES.append(os.memfd_create("hog"))
            block = bytes(16 << 20)
            for _ in range(160):
                os.write(FILES[0], block)
            time.sleep(2)
        return torch.relu(self.lin(x))
