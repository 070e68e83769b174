"""H54: the weights are constants of the code.

Method: as constructed under the usual seed, so that a checker that never redraws them is satisfied.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import torch
import torch.nn as nn


torch.manual_seed(0)
BAKED = nn.Linear(32, 32).requires_grad_(False)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(BAKED.to(x.device)(x))
