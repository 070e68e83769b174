"""C22: leaves a folder nested two thousand levels deep in its temporary folder.

Method: the judge's own clearing away runs out of stack or descriptors.
Problem: linear
Expect: FAIL values ("elements differ")
"""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        os.chdir(os.environ["TMPDIR"])
        for _ in range(2000):
            os.mkdir("d")
            os.chdir("d")
        return x
