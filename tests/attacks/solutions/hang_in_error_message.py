"""C24: an exception whose text takes for ever.

Method: the harness calls str() on it.
Problem: linear
Expect: FAIL timeout ("running forward did not end within")
Options: {"timeout": 8}
"""

import time

import torch
import torch.nn as nn


class Slow(Exception):
    def __str__(self):
        time.sleep(86400)
        return ""


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise Slow
