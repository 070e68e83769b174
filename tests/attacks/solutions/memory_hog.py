"""C44: touches memory until it is stopped, up to three gigabytes.

Method: brings down the machine, or the judge with it.
Problem: linear
Expect: FAIL memory ("more than 1.5 GiB of memory")
Options: {"memory_limit": 1610612736}
"""

import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        kept = []
        for _ in range(48):
            kept.append(torch.ones(16 << 20))
            time.sleep(0.05)
        return x
