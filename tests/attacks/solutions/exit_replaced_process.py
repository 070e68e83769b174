"""H16: the process becomes /bin/true.

Method: exec keeps the process id and ends with 0.
Problem: linear
Expect: FAIL exit ("ended by itself with exit code 0")
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        getattr(os, "exec" + "v")("/bin/true", ["true"])
