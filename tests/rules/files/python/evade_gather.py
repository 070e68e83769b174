# expect: forward-compute:15
# Indexing with a tensor.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.register_buffer("order", torch.arange(8))

    def forward(self, x):
        return cuda_extension.linear(x[self.order], self.weight)
