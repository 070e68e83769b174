# expect: memory=warn
# Too large for most machines, with a small variant of its own.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x.cumsum(-1)


def get_inputs():
    return [torch.randn(400000, 65536)]


def get_init_inputs():
    return []


def get_small_inputs():
    return [torch.randn(16, 64)]
