"""H16: KeyboardInterrupt from forward.

Method: not an Exception, so that a careless handler lets it through to the top.
Problem: linear
Expect: FAIL exception ("KeyboardInterrupt")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise KeyboardInterrupt
