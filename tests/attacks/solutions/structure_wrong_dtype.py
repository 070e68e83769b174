"""C32: the right values in another dtype.

Method: allclose after a cast does not mind.
Problem: linear
Expect: FAIL structure ("has dtype float64, the reference has float32")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x)).double()
