# expect: forward-compute:9
# The work is in a helper.
import cuda_extension
import torch
from torch import nn


def fast(a, b):
    return a.matmul(b)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return fast(x, self.weight)
