# expect: runs=fail
# forward returns an object of its own kind.
import torch
import torch.nn as nn


class Pair:
    def __init__(self, x):
        self.x = x


class Model(nn.Module):
    def forward(self, x):
        return Pair(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
