# expect: forward-compute:15
# The function is kept as an attribute.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.op = torch.matmul

    def forward(self, x):
        return self.op(x, self.weight)
