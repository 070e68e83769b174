# expect: forward-compute:16
# torch under another name.
import cuda_extension
import torch
import torch as t
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return t.mm(x, self.weight)
