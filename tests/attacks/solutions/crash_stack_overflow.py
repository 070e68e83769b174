"""C24: recurses through C until the stack is gone.

Method: none; a crash must be told as one.
Problem: linear
Expect: FAIL crash|exception
"""

import functools
import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        sys.setrecursionlimit(1 << 30)

        def down(_):
            return max([0], key=down)

        return functools.reduce(lambda a, b: down(b), [1, 2])
