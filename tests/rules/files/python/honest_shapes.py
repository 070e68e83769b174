# expect: nothing
# Arithmetic on sizes, views, allocation.
import math

import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        n, k = x.shape
        rows = x.size(0) * 2 + x.numel() // k
        y = torch.empty((rows, k), dtype=x.dtype, device=x.device)
        cuda_extension.rows(y, x.view(-1, k).contiguous(), math.sqrt(k), n / k, k % 2 == 0)
        return y.reshape(n, -1).transpose(0, 1)
