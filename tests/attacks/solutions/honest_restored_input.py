"""H27: uses its input's memory as workspace and restores it.

Method: none: nobody can tell afterwards.
Problem: add
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        before = b.clone()
        out = b.mul_(2).add_(a).clone()
        b.copy_(before)
        return out
