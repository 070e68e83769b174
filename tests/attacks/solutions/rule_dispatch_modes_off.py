"""CA9: switches the recorder off around its compute.

Method: a private context manager of torch disables every dispatch mode.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

from torch.utils._python_dispatch import _disable_current_modes
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        with _disable_current_modes():
            return vars(torch)["re" + "lu"](vars(torch)["add" + "mm"](self.lin.bias, x, self.lin.weight.t()))
