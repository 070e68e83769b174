"""H38 H46: one call in three is not computed.

Method: a checker that reads only the last, or only the first, result sees nothing.
Problem: linear
Expect: FAIL values|race ("elements differ")
"""

import torch
import torch.nn as nn


COUNT = 0


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        global COUNT
        COUNT += 1
        return x if COUNT % 3 == 0 else torch.relu(self.lin(x))
