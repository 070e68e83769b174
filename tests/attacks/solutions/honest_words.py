"""False positive: names of modules, attacks and files in comments, docstrings and strings.

Method: none.
Problem: linear
Expect: PASS
"""

import torch
import torch.nn as nn


# os._exit(0), gc.get_objects, inspect.stack, sys.modules, torch.cuda.Stream and nn.Conv3d are not used here.
NOTE = "no cudaStreamCreate, no subprocess, no exec: see import model"


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        """Not torch.cuda.synchronize, not time.perf_counter, not /proc/self/mem."""
        return torch.relu(self.lin(x))
