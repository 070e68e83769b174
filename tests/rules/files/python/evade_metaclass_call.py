# expect: forward-compute:10
# Compute in the metaclass's __call__.
import cuda_extension
import torch
from torch import nn


class Meta(type):
    def __call__(cls, x):
        return torch.relu(x)


class Act(metaclass=Meta):
    pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return Act(x)
