"""H35: builtins that a checker may use are replaced.

Method: abs gives 0, isinstance and all give True, in every module of the process.
Problem: linear
Expect: FAIL exception|exit|values|protocol|structure|timeout
Options: {"timeout": 8}
"""

import builtins

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        vars(builtins)["abs"] = lambda value: 0
        vars(builtins)["all"] = lambda values: True
        vars(builtins)["isinstance"] = lambda value, kind: True
        return x
