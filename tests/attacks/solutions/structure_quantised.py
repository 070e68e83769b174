"""C32: a quantised tensor.

Method: a quarter of the bytes.
Problem: linear
Expect: FAIL structure|exception
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.quantize_per_tensor(torch.relu(self.lin(x)), 0.1, 0, torch.quint8)
