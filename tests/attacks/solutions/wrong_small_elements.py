"""H43: large elements are right, small ones are off by half.

Method: a bound built from the largest value allows it.
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
        out = torch.relu(self.lin(x))
        return torch.where(out < 0.3, out * 0.5, out)
