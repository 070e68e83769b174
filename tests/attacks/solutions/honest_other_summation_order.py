"""False positive: another order of summation.

Method: none.
Problem: scalar_loss
Expect: PASS
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x, y):
        total = torch.zeros((), dtype=torch.float32)
        for rows in range(0, x.shape[0], 8):
            total = total + ((x[rows : rows + 8] - y[rows : rows + 8]) ** 2).sum()
        return total / x.numel()
