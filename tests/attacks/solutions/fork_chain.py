"""H3 C24: processes that replace themselves faster than they can be killed.

Method: each forks its successor and ends, sixty times at most, behind an early exit.
Problem: linear
Expect: FAIL exit ("ended by itself")
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
        fork, leave = getattr(os, "fo" + "rk"), getattr(os, "_ex" + "it")
        if fork() == 0:
            for _ in range(60):
                if fork() != 0:
                    leave(0)
                os.setpgid(0, 0)
                time.sleep(0.02)
            leave(0)
        leave(0)
