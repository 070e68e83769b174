"""False positive: `pass` and `try` in a constructor.

Method: none.
Problem: linear
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        try:
            pass
        except ValueError:
            pass

    def forward(self, x):
        try:
            return torch.relu(self.lin(x))
        except RuntimeError:
            raise
