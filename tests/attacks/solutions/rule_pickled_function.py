"""H62: a function out of a pickle.

Method: its name is data.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import pickle

import torch
import torch.nn as nn


LINEAR = pickle.loads(b"ctorch._C._nn\nlinear\n.")
RELU = pickle.loads(b"ctorch\nrelu\n.")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        return RELU(LINEAR(x, self.lin.weight, self.lin.bias))
