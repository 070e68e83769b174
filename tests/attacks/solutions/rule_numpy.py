"""H60: numpy on the tensors' memory.

Method: torch dispatches nothing.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import numpy as np

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        out = np.maximum(np.asarray(x) @ self.lin.weight.detach().numpy().T + self.lin.bias.detach().numpy(), 0)
        return torch.from_numpy(out)
