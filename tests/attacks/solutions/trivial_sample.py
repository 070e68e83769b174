"""H51: a mean over a sample of the elements.

Method: one row in sixteen.
Problem: scalar_loss
Expect: FAIL values ("the only element")
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        return ((x[::16] - y[::16]) ** 2).mean()
