"""C43: a sparse tensor.

Method: dense on the other side.
Problem: linear
Expect: FAIL structure ("only dense tensors can be compared")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x)).to_sparse()
