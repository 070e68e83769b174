"""H38: remembers its answer by a sample of the input.

Method: four corners stand for the whole; a change elsewhere goes unnoticed.
Problem: linear
Expect: FAIL stale|values ("elements differ")
Options: {"trials": 3}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.known = {}

    def forward(self, x):
        key = (x[0, 0].item(), float(self.lin.weight[0, 0]))
        if key not in self.known:
            self.known[key] = torch.relu(self.lin(x))
        return self.known[key].clone()
