# expect: forward-compute:10
# Reading the weight runs a module of torch's.
import cuda_extension
import torch
from torch import nn


class Squash(nn.Module):
    def forward(self, w):
        return torch.tanh(w)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        nn.utils.parametrize.register_parametrization(self, "weight", Squash())

    def forward(self, x):
        return cuda_extension.f(x, self.weight)
