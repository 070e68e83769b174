# expect: inputs-unchanged=warn
# An in-place operator changes the input.
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        x.add_(1)
        return x * 2.5


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
