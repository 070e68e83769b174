"""CA9: torch.ops.aten instead of the public functions.

Method: a filter over public names does not see it.
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

    def forward(self, x):
        return torch.ops.aten.relu(torch.ops.aten.addmm(self.lin.bias, x, self.lin.weight.t()))
