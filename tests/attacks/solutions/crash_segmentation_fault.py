"""C24: reads address zero.

Method: none; a crash must be told as one.
Problem: linear
Expect: FAIL crash ("SIGSEGV")
"""

import ctypes

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        ctypes.string_at(0)
        return x
