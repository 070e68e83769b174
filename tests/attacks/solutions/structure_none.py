"""C43: nothing at all.

Method: a missing result is no difference.
Problem: linear
Expect: FAIL structure ("out is None")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return None
