"""C24: an exception whose text raises another one.

Method: the harness's own handler falls over it.
Problem: linear
Expect: FAIL exception ("its message cannot be shown")
"""

import torch
import torch.nn as nn


class Mute(Exception):
    def __str__(self):
        raise SystemExit(0)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise Mute
