"""An exit handler that never ends, behind right answers.

Method: none: sloppy, not a cheat. The verdict stands, and the process is gone all the same.
Problem: linear
Expect: PASS
"""

import atexit
import time

import torch
import torch.nn as nn


atexit.register(time.sleep, 86400)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))
