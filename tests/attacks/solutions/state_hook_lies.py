"""CA6: a state_dict hook shows the loaded weights while forward uses others.

Method: what the runner reads back looks right.
Problem: linear
Expect: FAIL values|stale ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.shown = {}
        self.own = nn.Linear(n, n).requires_grad_(False)
        object.__setattr__(self, "own", self.__dict__["_modules"].pop("own"))

    def forward(self, x):
        return torch.relu(self.own.to(x.device)(x))
