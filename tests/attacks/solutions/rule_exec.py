"""H62: code hidden in base64.

Method: exec of a decoded string.
Problem: linear
Expect: FAIL rule
Options: {"rules": "strict"}
"""

import base64

import torch
import torch.nn as nn


CODE = base64.b64encode(b"def f(x, w, b):\n    return (x @ w.t() + b).clamp(min=0)\n")


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = nn.Linear(n, n)

    def forward(self, x):
        names = {}
        exec(base64.b64decode(CODE), names)
        return names["f"](x, self.lin.weight, self.lin.bias)
