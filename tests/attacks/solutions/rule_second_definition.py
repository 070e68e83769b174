"""H62: the class is defined twice, in branches.

Method: the one that is read is not the one that lives.
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

    def forward(self, x):
        return torch.empty_like(x)


if torch.__version__:

    class Other(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.lin = nn.Linear(n, n)

        def forward(self, x):
            return torch.relu(self.lin(x))

    globals()["Model" + "New"] = Other
