"""H45: a result that broadcasts to the right one.

Method: allclose broadcasts.
Problem: linear_sum
Expect: FAIL structure ("has shape (16,), the reference has (16, 1)")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return self.lin(x).sum(1)
