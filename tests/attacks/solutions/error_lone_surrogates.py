"""C24: an exception whose text no encoding can hold.

Method: half of a surrogate pair; whoever prints it raises UnicodeEncodeError.
Problem: linear
Expect: FAIL exception ("forward raised RuntimeError")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise RuntimeError("\ud800 unprintable \udfff")
