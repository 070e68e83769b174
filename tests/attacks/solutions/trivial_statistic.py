"""H51: the expected value of a mean over random numbers.

Method: (x - y)**2 of normal numbers has mean 2.
Problem: scalar_loss
Expect: FAIL values ("the only element")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return torch.full((), 2.0, device=x.device)
