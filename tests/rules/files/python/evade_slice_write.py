# expect: forward-compute:16
# Writing into a slice copies.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        y = torch.empty(16, 8, device=x.device)
        y[:8] = x
        return cuda_extension.linear(y, self.weight)
