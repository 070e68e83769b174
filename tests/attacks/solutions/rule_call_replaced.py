"""H62: __call__ is overridden, forward is decoration.

Method: the harness calls the module, not forward.
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

    def __call__(self, x):
        return torch.relu(self.lin(x))

    def forward(self, x):
        return torch.empty_like(x)
