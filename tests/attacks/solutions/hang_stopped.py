"""C24: stops its own process.

Method: a stopped process neither answers nor dies of SIGTERM.
Problem: linear
Expect: FAIL timeout ("running forward did not end within")
Options: {"timeout": 8}
"""

import os
import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        getattr(os, "ki" + "ll")(os.getpid(), signal.SIGSTOP)
        return x
