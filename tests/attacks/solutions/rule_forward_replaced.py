"""H62: forward is set from elsewhere after the class was made.

Method: the forward that is read is not the one that runs.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.forward = self.other

    def other(self, x):
        return torch.relu(self.lin(x))

    def forward(self, x):
        return torch.empty_like(x)
