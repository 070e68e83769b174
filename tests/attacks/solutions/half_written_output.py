"""H23: writes only the first half of its result.

Method: as a launch with half the grid; the rest of the memory may hold an old answer.
Problem: linear
Expect: FAIL unwritten|values ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = torch.empty_like(x)
        out[:8] = torch.relu(self.lin(x[:8]))
        return out
