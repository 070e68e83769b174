"""A wide fully connected layer, SiLU and a constant factor: 1024 rows, 8192 -> 8192 features."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.linear(x)) * self.scale


ROWS = 1024
FEATURES = 8192
SCALE = 2.0


def get_inputs():
    # Standard deviation 2: the layer's outputs then spread by about 1.2, across the bend of SiLU.
    return [torch.randn(ROWS, FEATURES, dtype=torch.float32).mul_(2.0)]


def get_init_inputs():
    return [FEATURES, FEATURES, SCALE]


def get_small_inputs():
    return [torch.randn(13, 96, dtype=torch.float32).mul_(2.0)]


def get_small_init_inputs():
    return [96, 132, SCALE]
