# expect: reference:9
# The reference is loaded by its path.
import importlib.util

import cuda_extension
import torch
from torch import nn

spec = importlib.util.spec_from_file_location("m", "model.py")


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.linear(x, self.weight, self.bias)
