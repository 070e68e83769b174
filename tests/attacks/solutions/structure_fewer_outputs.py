"""H45: only the first of two results.

Method: the second was the expensive one.
Problem: tuple_pair
Expect: FAIL structure ("out has 1 items, the reference returns 2")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (x + 1,)
