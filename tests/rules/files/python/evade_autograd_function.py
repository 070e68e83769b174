# expect: forward-compute:11
# The work is in an autograd function.
import cuda_extension
import torch
from torch import nn


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return torch.mm(a, b)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return Product.apply(x, self.weight)
