"""H25: looks for seeds and paths in the environment and on the command lines.

Method: prints what it finds of the workspace, the seed and the judge; draws inputs from a guessed seed.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import os
import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        told = {name: value for name, value in os.environ.items() if "seed" in name.lower() or "model" in value}
        print("told:", told, sys.argv, flush=True)
        torch.manual_seed(1)
        return torch.relu(self.lin(torch.randn(16, 32).to(x.device)))
