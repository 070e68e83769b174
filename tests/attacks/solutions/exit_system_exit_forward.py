"""H16: SystemExit(0) from forward.

Method: ends the checking process with success before anything is compared.
Problem: linear
Expect: FAIL exit ("tried to end the process in forward")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise SystemExit(0)
