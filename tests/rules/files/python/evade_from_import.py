# expect: forward-compute:16
# The function under another name.
import cuda_extension
import torch
from torch import matmul as product
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return product(x, self.weight)
