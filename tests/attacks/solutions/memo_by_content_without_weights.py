"""H38: remembers its answer by the content of the input, across changes of the weights.

Method: a hash of all values; the weights are not part of it.
Problem: linear
Expect: FAIL stale ("earlier weights")
"""

import torch
import torch.nn as nn


KNOWN = {}


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        key = bytes(x.contiguous().view(torch.uint8).flatten().tolist())
        if key not in KNOWN:
            KNOWN[key] = torch.relu(self.lin(x))
        return KNOWN[key].clone()
