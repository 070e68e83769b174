"""False positive: NaN and Inf where the reference has them.

Method: none.
Problem: logarithm
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.log2(x) * 0.6931471805599453
