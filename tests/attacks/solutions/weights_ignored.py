"""H50 H54: leaves out weights that are one and zero after construction.

Method: LayerNorm without its scale and shift.
Problem: layer_norm
Expect: FAIL values|hint ("elements differ")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[-1:])
