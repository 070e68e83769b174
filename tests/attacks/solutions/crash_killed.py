"""C24: kills itself with SIGKILL.

Method: looks like the work of the out-of-memory killer.
Problem: linear
Expect: FAIL crash ("SIGKILL")
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
        getattr(os, "ki" + "ll")(os.getpid(), signal.SIGKILL)
