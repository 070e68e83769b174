"""CA9: the @ operator and arithmetic instead of names.

Method: no function of torch is named.
Problem: linear
Expect: FAIL rule ("an operator on tensors")
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        y = x @ self.lin.weight.t() + self.lin.bias
        return y * (y > 0)
