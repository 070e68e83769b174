"""H27: zeroes its input and returns zeros.

Method: a reference that reads the same tensor would agree.
Problem: add
Expect: FAIL mutated_input ("ModelNew changed input 0")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        a.zero_()
        b.zero_()
        return torch.zeros_like(a)
