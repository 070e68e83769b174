"""C32 H57: the right values in half precision.

Method: half the bytes to write.
Problem: linear
Expect: FAIL structure ("has dtype float16")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x)).half()
