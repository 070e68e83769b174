# A grouped transposed 3-D convolution with stride, padding and output padding of its own for each axis.
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, cin, cout, kernel, stride, padding, output_padding, groups):
        super().__init__()
        self.up = nn.ConvTranspose3d(cin, cout, kernel, stride, padding, output_padding, groups, bias=False)

    def forward(self, x):
        return self.up(x)


def get_inputs():
    return [torch.randn(2, 8, 4, 5, 6)]


def get_init_inputs():
    return [8, 8, (3, 5, 7), (2, 2, 2), (1, 2, 3), (1, 1, 1), 4]
