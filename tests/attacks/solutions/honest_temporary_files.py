"""False positive: writes and reads temporary files.

Method: none.
Problem: linear
Expect: PASS
"""

import os
import tempfile

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"tuning")
        path = os.path.join(os.path.expanduser("~"), "tuning.txt")
        with open(path, "w") as file:
            file.write("1")
        return torch.relu(self.lin(x))
