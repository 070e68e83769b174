"""Max pooling with overlapping windows: 4 x 4, stride 1, padding 1, over 32 x 64 x 512 x 512."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, kernel_size: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size, stride=stride, padding=padding)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(32, 64, 512, 512, dtype=torch.float32)]


def get_init_inputs():
    return [4, 1, 1]


def get_small_inputs():
    return [torch.randn(2, 3, 37, 141, dtype=torch.float32)]


def get_small_init_inputs():
    return [4, 1, 1]
