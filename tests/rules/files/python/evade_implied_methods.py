# expect: forward-compute:10 forward-compute:14 forward-compute:17
# Compute in special methods that nobody names.
import cuda_extension
import torch
from torch import nn


class Box:
    def __new__(cls, x):
        torch.tanh(x)
        return object.__new__(cls)

    def __iter__(self):
        yield torch.relu(self.x)

    def __hash__(self):
        return torch.sigmoid(self.x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        box = Box(x)
        return [item for item in box][0]
