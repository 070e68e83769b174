"""H62: torch's functions put into the instance's __dict__.

Method: an attribute that no assignment made.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)
        self.__dict__.update(step=torch.nn.functional.linear, finish=torch.relu)

    def forward(self, x):
        return self.finish(self.step(x, self.lin.weight, self.lin.bias))
