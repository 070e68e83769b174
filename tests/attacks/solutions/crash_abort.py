"""C24: abort(), as an uncaught C++ exception does.

Method: none; a crash must be told as one.
Problem: linear
Expect: FAIL crash ("SIGABRT")
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        os.abort()
