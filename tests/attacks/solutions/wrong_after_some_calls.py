"""H38: right on the first four calls of the process.

Method: a fixed number of correctness calls is known from the harness's source.
Problem: linear
Expect: FAIL values|stale|race ("elements differ")
"""

import torch
import torch.nn as nn


COUNT = 0


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        global COUNT
        COUNT += 1
        return x if COUNT > 4 else torch.relu(self.lin(x))
