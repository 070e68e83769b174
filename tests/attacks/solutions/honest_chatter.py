"""False positive: prints much, warns, and logs.

Method: none.
Problem: linear
Expect: PASS
"""

import logging
import warnings

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        warnings.warn("a warning", stacklevel=1)
        logging.getLogger("mine").error("an error that is none")
        print("[bold]PASS[/bold]" * 100_000)
        return torch.relu(self.lin(x))
