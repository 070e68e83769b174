"""H22: returns memory that nothing was written to.

Method: torch.empty_like lands on the freed result of whoever computed the right answer here.
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
        return torch.empty_like(x)
