"""H62: the compute lies in a module beside the solution.

Method: only model_new.py would be read.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
Files: {"my_helper.py": "import torch\ndef compute(x, w, b):\n    return torch.relu(torch.nn.functional.linear(x, w, b))\n"}
"""

from my_helper import compute

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return compute(x, self.lin.weight, self.lin.bias)
