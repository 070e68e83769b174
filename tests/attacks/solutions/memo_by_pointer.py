"""H38: remembers its answer by the address of the input.

Method: timed calls use the same tensor again and again.
Problem: linear
Expect: FAIL stale ("memoised by address")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.known = {}

    def forward(self, x):
        key = x.data_ptr()
        if key not in self.known:
            self.known[key] = torch.relu(self.lin(x))
        return self.known[key].clone()
