"""H62: a forward hook computes.

Method: forward returns its input; the registered hook replaces the result.
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
        self.register_forward_hook(lambda module, given, made: torch.relu(module.lin(given[0])))

    def forward(self, x):
        return torch.empty_like(x)
