"""H44: one element in five hundred is wrong.

Method: a matched-ratio budget lets it through.
Problem: linear
Expect: FAIL values ("1 of 512 elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = torch.relu(self.lin(x))
        out[3, 5] += 1
        return out
