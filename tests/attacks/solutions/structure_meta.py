"""H4: a tensor without memory.

Method: right shape and dtype, no values.
Problem: linear
Expect: FAIL structure ("no memory")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.empty_like(x, device="meta")
