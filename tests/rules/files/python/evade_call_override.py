# expect: forward-compute:18
# The work is in __call__.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.copy(x)

    def __call__(self, x):
        return torch.mm(x, self.weight)
