"""H60: torch.compile of torch's own operators.

Method: the kernels are generated, and not the solution's.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


def compute(x, weight, bias):
    return torch.relu(torch.addmm(bias, x, weight.t()))


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.compiled = torch.compile(compute, backend="eager")

    def forward(self, x):
        return self.compiled(x, self.lin.weight, self.lin.bias)
