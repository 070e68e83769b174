"""H45 C44: an expanded result of a million million elements.

Method: hopes that the judge allocates or compares it.
Problem: linear
Expect: FAIL structure ("has shape (1048576, 1048576)")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.zeros(1, 1).expand(1 << 20, 1 << 20)
