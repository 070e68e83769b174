# expect: forward-compute:16
# The name is formatted.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        name = "add%s" % "mm"
        return getattr(torch, name)(self.bias, x, self.weight)
