"""C46: running statistics are not updated in train mode.

Method: the output is right, the state is not.
Problem: batch_norm
Expect: FAIL buffers ("differs after the same calls")
Options: {"train": true}
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x):
        mean, variance = x.mean(0), x.var(0, unbiased=False)
        return (x - mean) / torch.sqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
