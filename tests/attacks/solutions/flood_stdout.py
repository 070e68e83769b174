"""C24: a hundred megabytes of text on stdout, with a wrong answer.

Method: fills the pipe, the judge's memory, or the terminal.
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
        for _ in range(50):
            os.write(1, b"PASS\n" * 200_000)
        return x
