# expect: reach:8
# The same through an alias.
import cuda_extension
import torch
import torch.cuda as c
from torch import nn

c.synchronize = lambda device=None: None


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.linear(x, self.weight, self.bias)
