"""H62: special methods called by name, through a descriptor.

Method: neither an operator nor a function of torch appears in forward.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class Hidden:
    def __get__(self, owner, kind):
        return lambda x: (owner.lin.bias.__add__(x.__matmul__(owner.lin.weight.t()))).__mul__(1.0).clamp_min(0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    compute = Hidden()

    def forward(self, x):
        return self.compute(x)
