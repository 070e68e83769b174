"""C24: fifty megabytes of binary data and terminal escapes on stderr, with a wrong answer.

Method: as before; bytes that are no text.
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
            os.write(2, (bytes(range(256)) + b"\x1b]0;PASS\x07\x1b[2J") * 2000)
        return x
