"""H42 H50 C39: the mean of all outputs.

Method: one over the length of a softmax.
Problem: wide_softmax
Expect: FAIL values|trivial ("every element that ModelNew returned is")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, 1 / x.shape[1])
