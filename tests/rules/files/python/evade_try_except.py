# expect: forward-compute:18
# A fallback to torch when the kernel raises.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        try:
            return cuda_extension.linear(x, self.weight)
        except RuntimeError:
            return torch.mm(x, self.weight)
