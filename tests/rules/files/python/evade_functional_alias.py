# expect: forward-compute:16
# torch.nn.functional under another name.
import cuda_extension
import torch
import torch.nn.functional as G
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return G.relu(x)
