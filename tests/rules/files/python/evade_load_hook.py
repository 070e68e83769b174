# expect: early-compute:19
# Weights are multiplied when they are loaded.
import cuda_extension
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return cuda_extension.linear(x, self.weight, self.bias)

    def load_state_dict(self, state, strict=True, assign=False):
        found = super().load_state_dict(state, strict, assign)
        self.squared = self.weight.square()
        return found
