"""Layer normalisation over whole feature maps: 16 rows of 4,194,304 elements, each element with a weight and a bias."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, normalized_shape: tuple[int, ...]):
        super().__init__()
        self.norm = nn.LayerNorm(normalized_shape)
        # Not ones and zeros: an affine map that does nothing could be left out unnoticed.
        nn.init.normal_(self.norm.weight, mean=1.0, std=0.5)
        nn.init.normal_(self.norm.bias, std=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


BATCH = 16
FEATURES = (64, 256, 256)
SMALL_FEATURES = (4, 128, 128)


def draw(batch: int, features: tuple[int, ...]) -> torch.Tensor:
    # Every row with a mean and a spread of its own, so that its statistics matter.
    scale = torch.rand(batch, 1, 1, 1, dtype=torch.float32) * 1.5 + 0.5
    offset = torch.randn(batch, 1, 1, 1, dtype=torch.float32)
    return torch.randn(batch, *features, dtype=torch.float32).mul_(scale).add_(offset)


def get_inputs():
    return [draw(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES]


def get_small_inputs():
    return [draw(3, SMALL_FEATURES)]


def get_small_init_inputs():
    return [SMALL_FEATURES]
