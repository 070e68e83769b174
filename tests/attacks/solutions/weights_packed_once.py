"""H20: packs the weights on the first call and never again.

Method: the work is done before the timed calls; the packed copy goes stale.
Problem: linear
Expect: FAIL stale ("the weights of the trial before")
Options: {"trials": 3}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.packed = None

    def forward(self, x):
        if self.packed is None:
            self.packed = self.lin.weight.t().contiguous(), self.lin.bias.clone()
        return torch.relu(x @ self.packed[0] + self.packed[1])
