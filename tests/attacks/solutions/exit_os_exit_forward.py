"""H16: os._exit(0) from forward, its name put together at run time.

Method: no exception, no handler: the process is gone with exit code 0.
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
        getattr(os, "_ex" + "it")(0)
