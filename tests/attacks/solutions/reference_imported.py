"""H24: imports Model and returns its answer.

Method: `import model` put together at run time.
Problem: linear
Expect: FAIL exception ("the reference (model.py) is not available")
"""

import importlib

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        model = importlib.import_module("mod" + "el")
        return model.Model(32)(x)
