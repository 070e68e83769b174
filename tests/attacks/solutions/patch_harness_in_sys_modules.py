"""H7: looks for the harness in sys.modules.

Method: every module whose name begins with utils would have its functions replaced by ones that return True.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import sys

import torch
import torch.nn as nn


for name, module in list(sys.modules.items()):
    if name.split(".")[0] == "utils":
        print("found", name)
        for key, value in list(vars(module).items()):
            if callable(value):
                vars(module)[key] = lambda *args, **kwargs: True


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return x
