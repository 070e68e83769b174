"""H50 C39: one constant for each channel.

Method: what varies within a channel is below the tolerance.
Problem: channel_bias
Expect: FAIL values ("a constant per channel would pass")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.randn(6, 1, 1))

    def forward(self, x):
        return self.level.expand_as(x).clone()
