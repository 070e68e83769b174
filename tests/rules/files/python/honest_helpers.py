# expect: nothing
# Helper functions and classes that call kernels; list and dict methods with the names of tensor methods.
import cuda_extension
import torch
from torch import nn


def twice(v):
    return cuda_extension.linear(cuda_extension.linear(v))


class Block(nn.Module):
    def forward(self, v):
        return cuda_extension.act(v, kind='relu')


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        seen = []
        seen.append(x)
        order = sorted({'a': 1}.items())
        names = set()
        names.add(order[0][0])
        return self.block(twice(seen[0]))
