"""H60: TorchScript from a string.

Method: the compute is text.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


UNIT = torch.jit.CompilationUnit("def f(x, w, b):\n    return (x @ w.t() + b).clamp(min=0)\n")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return UNIT.f(x, self.lin.weight, self.lin.bias)
