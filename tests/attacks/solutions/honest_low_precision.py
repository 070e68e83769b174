"""H57: bf16 inside, within the tolerance.

Method: none: allowed, and said.
Problem: linear
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return torch.relu(self.lin.weight.bfloat16() @ x.bfloat16().t() + self.lin.bias.bfloat16()[:, None]).t().float()
