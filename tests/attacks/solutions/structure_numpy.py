"""C43: a numpy array for a tensor.

Method: compares equal in many checkers.
Problem: linear
Expect: FAIL structure ("numpy.ndarray")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x)).numpy()
