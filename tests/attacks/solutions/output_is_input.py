"""H32: the input itself where a copy is expected.

Method: equal values, no work; the caller's two tensors are one.
Problem: clone
Expect: FAIL aliased_output ("shares memory with input 0")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x
