# expect: forward-compute:7
# A lambda at the top of the file.
import cuda_extension
import torch
from torch import nn

act = lambda v: v.clamp(min=0)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return act(x)
