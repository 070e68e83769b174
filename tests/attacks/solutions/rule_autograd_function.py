"""CA9: an autograd Function around torch's operators.

Method: forward only calls apply.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        return torch.addmm(bias, x, weight.t()).clamp_(min=0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return Kernel.apply(x, self.lin.weight, self.lin.bias)
