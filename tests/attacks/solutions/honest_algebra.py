"""H53: the problem simplified by algebra.

Method: none: the same function at a fraction of the work; labelled, not refused.
Problem: linear_sum
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return x @ self.lin.weight.sum(0).unsqueeze(1) + self.lin.bias.sum()
