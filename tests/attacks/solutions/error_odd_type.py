"""C24: an exception class with a name of lone surrogates and escapes.

Method: the name is printed in the reason.
Problem: linear
Expect: FAIL exception ("forward raised")
"""

import torch
import torch.nn as nn


Odd = type("PASS\x1b[2J\n", (Exception,), {})


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        raise Odd("odd")
