"""H42 C39: zeros, where every output is smaller than the tolerance.

Method: softmax over many elements.
Problem: wide_softmax
Expect: FAIL values|trivial ("every element that ModelNew returned is 0")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
