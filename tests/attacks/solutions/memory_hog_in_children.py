"""C44: the same in eight children of half a gigabyte each.

Method: a limit for each process is not a limit for all.
Problem: linear
Expect: FAIL memory ("GiB of memory")
Options: {"memory_limit": 1610612736}
"""

import os
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        for _ in range(8):
            if getattr(os, "fo" + "rk")() == 0:
                kept = bytearray(512 << 20)
                kept[::4096] = b"x" * len(kept[::4096])
                time.sleep(30)
                getattr(os, "_ex" + "it")(0)
        time.sleep(15)
        return x
