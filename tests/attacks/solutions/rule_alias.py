"""H62: torch under other names.

Method: imports and assignments rename what is used.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

from torch.nn import functional as kernels
import torch
import torch.nn as nn


my_kernel, finish = kernels.linear, torch.relu


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.step = my_kernel

    def forward(self, x):
        return finish(self.step(x, self.lin.weight, self.lin.bias))
