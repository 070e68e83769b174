"""H26: NaN in every element, where the reference has NaN in half of them.

Method: a comparison that skips NaN positions by either side finds nothing to object to.
Problem: logarithm
Expect: FAIL values|stream_order|trivial ("NaN or Inf on one side only")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, float("nan"))
