# A 3-D convolution with three different kernel sizes given as a tuple.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, cin, cout, kernel, bias=False):
        super().__init__()
        self.conv = nn.Conv3d(cin, cout, kernel, bias=bias)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(2, 3, 10, 12, 14)]


def get_init_inputs():
    return [3, 8, (3, 5, 7)]
