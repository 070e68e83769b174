"""False positive: weights packed once, and again whenever they change.

Method: none.
Problem: linear
Expect: PASS
Options: {"trials": 3}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.packed = self.seen = None

    def forward(self, x):
        now = (self.lin.weight._version, self.lin.weight.data_ptr())
        if now != self.seen:
            self.packed, self.seen = self.lin.weight.t().contiguous(), now
        return torch.relu(x @ self.packed + self.lin.bias)
