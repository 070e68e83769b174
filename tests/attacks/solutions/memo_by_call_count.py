"""H38: right on the first call of each construction, that answer ever after.

Method: checks happen first, timing later.
Problem: linear
Expect: FAIL stale|values ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.answer = None

    def forward(self, x):
        if self.answer is None:
            self.answer = torch.relu(self.lin(x))
        return self.answer.clone()
