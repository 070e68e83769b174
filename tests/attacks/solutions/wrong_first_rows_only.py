"""H23 C27: rows beyond the first eight are never computed.

Method: a truncated element count.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = torch.zeros_like(x)
        out[:8] = torch.relu(self.lin(x[:8]))
        return out
