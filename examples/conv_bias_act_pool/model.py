"""A 3 x 3 convolution of few channels, tanh, scale, bias, and 4 x 4 max pooling: 128 x 8 x 256 x 256 -> 64 channels."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, scale: float, pool_size: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(out_channels, 1, 1))
        self.pool = nn.MaxPool2d(pool_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(torch.tanh(self.conv(x)) * self.scale + self.bias)


BATCH = 128
IN_CHANNELS = 8
OUT_CHANNELS = 64
SIZE = 256


def get_inputs():
    return [torch.randn(BATCH, IN_CHANNELS, SIZE, SIZE, dtype=torch.float32)]


def get_init_inputs():
    return [IN_CHANNELS, OUT_CHANNELS, 3, 2.0, 4]


def get_small_inputs():
    return [torch.randn(3, IN_CHANNELS, 23, 35, dtype=torch.float32)]


def get_small_init_inputs():
    return [IN_CHANNELS, 16, 3, 2.0, 4]
