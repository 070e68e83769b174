"""H62: a method taken from the tensor's class.

Method: type(x).relu instead of torch.relu.
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
        kind = type(x)
        return kind.relu(kind.add(kind.matmul(x, self.lin.weight.t()), self.lin.bias))
