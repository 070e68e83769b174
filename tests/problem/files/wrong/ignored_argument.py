# expect: constructor-arguments=warn:8 meaningful=warn
# The number of groups is taken and forgotten.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return [16, 4]
