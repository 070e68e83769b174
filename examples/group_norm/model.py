"""Group normalisation of large feature maps: 112 samples x 64 channels x 512 x 512, in 8 groups of 8 channels."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        # Not ones and zeros: an affine map that does nothing could be left out unnoticed.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.5)
        nn.init.normal_(self.norm.bias, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


BATCH = 112
CHANNELS = 64
GROUPS = 8
HEIGHT = 512
WIDTH = 512


def draw(batch: int, channels: int, height: int, width: int) -> torch.Tensor:
    # Every sample and channel with a mean and a spread of its own, so that statistics matter.
    scale = torch.rand(batch, channels, 1, 1, dtype=torch.float32) * 1.5 + 0.5
    offset = torch.randn(batch, channels, 1, 1, dtype=torch.float32)
    return torch.randn(batch, channels, height, width, dtype=torch.float32).mul_(scale).add_(offset)


def get_inputs():
    return [draw(BATCH, CHANNELS, HEIGHT, WIDTH)]


def get_init_inputs():
    return [CHANNELS, GROUPS]


def get_small_inputs():
    return [draw(2, 8, 128, 128)]


def get_small_init_inputs():
    return [8, 2]
