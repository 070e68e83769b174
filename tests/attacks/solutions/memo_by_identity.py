"""H38: remembers its answer by the identity of the tensor object.

Method: as before, with id().
Problem: linear
Expect: FAIL stale ("memoised by address or object")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.known = {}

    def forward(self, x):
        key = id(x)
        if key not in self.known:
            self.known[key] = torch.relu(self.lin(x)), x
        return self.known[key][0].clone()
