# expect: forward-compute:7
# The function lies in a table.
import cuda_extension
import torch
from torch import nn

OPS = {"mm": torch.mm}


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return OPS["mm"](x, self.weight)
