"""H26: NaN in every element.

Method: hopes that NaN compares as "do not care".
Problem: linear
Expect: FAIL values|stream_order ("NaN")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.full_like(x, float("nan"))
