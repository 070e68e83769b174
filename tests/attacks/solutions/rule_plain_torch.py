"""H60 CA9: torch's own operators in forward.

Method: none; the plainest breach of the rules.
Problem: linear
Expect: FAIL rule ("forward calls relu")
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin(x))
