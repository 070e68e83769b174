# expect: forward-compute:10
# The work is in a class of the solution's own.
import cuda_extension
import torch
from torch import nn


class Block(nn.Module):
    def forward(self, x):
        return x.softmax(dim=-1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)
